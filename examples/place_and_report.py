"""Place a trace with every strategy, compare the plans with the proven optimum, and write a report.

This is what `placer run --report` does. Cells begin with `# %%`: editors open this file as a notebook, and Python runs
it as a script.
"""

# %%
from pathlib import Path

import placer
from placer.report.html import page_of_run, write_page, write_plots
from traces.arrivals import Recipe, generate

# %% A trace: your own file, or a generated one.
trace = Path("arrivals.csv")
trace.write_text("".join(generate(Recipe(count=30, sla=(0.05, 0.15), seed=7))), encoding="utf-8")

# %% Place it with every strategy and predictor. SLA violations are measured on the simulated card.
arrivals = placer.read_trace(trace)
result = placer.place(arrivals)
print(result.table()[["strategy", "predictor", "nics", "wastage_pct", "sla_violations_pct"]].to_string(index=False))
print(f"The optimum needs {result.optimum} NICs.")

# %% Which NFs share a NIC in the plan of one strategy.
nf_of = {arrival.tenant.id: arrival.tenant.workload.nf for arrival in arrivals}
placements = result.placements().query("strategy == 'contention-aware' and predictor == 'tomur'")
placements["nf"] = placements["id"].map(nf_of)
print(placements.groupby("nic", sort=False)["nf"].agg(", ".join).head().to_string())

# %% One HTML page with all results, and its charts as SVG and PNG.
page = page_of_run(result.comparison, trace.name)
write_page(page, Path("report.html"))
print(*page.summary, *write_plots(page, Path("plots")), sep="\n")
