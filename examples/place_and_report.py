# %% [markdown]
# # Place a trace, and show why
# What `placer run --report` does, in a few lines: every strategy on one trace, beside the proven optimum.
# Cells begin with `# %%`: editors open this file as a notebook, and Python runs it as it is.

# %%
from pathlib import Path

from placer.progress import Progress
from placer.report.html import page_of_run, write_page, write_plots
from placer.report.html.run_tables import broken, co_locations, strategies_table
from placer.run import RunRequest, run
from traces.arrivals import Recipe, generate

# %% A trace: a file of your own, or one that is drawn.
trace = Path("arrivals.csv")
trace.write_text("".join(generate(Recipe(count=60, sla=(0.05, 0.15), seed=7))), encoding="utf-8")

# %% Every strategy with every predictor, judged on the simulated card.
comparison = run(RunRequest(arrivals=str(trace)), Progress(quiet=True))
table = strategies_table(comparison)
print(table.to_string(index=False))

# %% Who shares a NIC in the plan of the third row, and whose SLA breaks.
tomur = comparison.evaluations[2]
print(co_locations(tomur.plan).head().to_string(index=False))
print(broken(tomur).to_string(index=False) if tomur.violated else "Every SLA is kept.")

# %% One page for people, and its charts as SVG and PNG for papers.
page = page_of_run(comparison, trace.name)
write_page(page, Path("report.html"))
print(*page.summary, *write_plots(page, Path("plots")), sep="\n")
