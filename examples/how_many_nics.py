"""How many NICs to buy: compare strategies over many traces, then size the fleet for a growing number of arrivals.

This is what `placer compare` and `placer size` do. Every result is kept on disk; the tables show medians and ranges.
"""

# %%
from dataclasses import replace
from pathlib import Path

import pandas as pd

from placer.progress import Progress
from placer.report.text.sizing import recommendation_line
from placer.report.text.study import as_table
from placer.studies import GROUP_COLUMNS, Study, TraceSpec, execute, summarize, tasks_of_study
from placer.studies.sizing import Sizing, recommendation_of, size
from traces.arrivals import Recipe, generate

# %% A study, as a study file describes it (docs/formats/study.md).
study = Study(
    seed=1,
    strategies=("greedy", "contention-aware"),
    predictors=("tomur",),
    budgets=(2.0, 0.5),
    trace=(TraceSpec(count=30, draws=2),),
)
results = execute(tasks_of_study(study, print), Path("study"))
print(as_table(summarize(results, GROUP_COLUMNS)))

# %% All rows are in a Parquet file. An interrupted study continues from the results that it kept.
assert pd.read_parquet("study/results.parquet").equals(results)

# %% Today's trace, grown: what to buy for half as many arrivals again, with at most 2 % SLA violations.
trace = Path("today.csv")
trace.write_text("".join(generate(Recipe(count=30, seed=2))), encoding="utf-8")
sizing = Sizing(str(trace), next_year=1.5, growth=(1.0, 2.0), budgets=(1.0,), draws=2)
recommendation = recommendation_of(size(sizing, Path("size"), Progress()), sizing)
print(recommendation_line(recommendation, sizing))

# %% The same if SLAs allowed half the drop.
tight = replace(sizing, growth=(1.5,), sla=(0.5, 1.0))
curves = summarize(size(tight, Path("size"), Progress()), ("axis", "factor", "strategy"))
print(curves[curves["axis"] == "sla"][["factor", "strategy", "nics", "violations_mean_pct"]].to_string(index=False))
