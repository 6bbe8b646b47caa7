# %% [markdown]
# # How many NICs for next year?
# What `placer compare` and `placer size` do: many runs, kept as they are done, told as medians with their spread.

# %%
from dataclasses import replace
from pathlib import Path

import pandas as pd

from placer.progress import Progress
from placer.report.text.sizing import line_of
from placer.report.text.study import BY, as_table
from placer.studies import Study, Trace, conduct, spread_of, units_of
from placer.studies.sizing import Sizing, answer_of, size
from traces.arrivals import Recipe, generate

# %% A study is what its file says (docs/formats.md); here it is made in place.
study = Study(
    seed=1,
    strategies=("greedy", "contention-aware"),
    predictors=("tomur",),
    risks=(0.05, 0.5),
    trace=(Trace(count=30, draws=2),),
)
results = conduct(units_of(study, print), Path("study"))
print(as_table(spread_of(results, BY)))

# %% All rows are in Parquet, and a study that was interrupted goes on from there.
assert pd.read_parquet("study/results.parquet").equals(results)

# %% Today's trace, grown: what to buy for half as many arrivals again, with at most 2 % of SLAs broken.
trace = Path("today.csv")
trace.write_text("".join(generate(Recipe(count=30, seed=2))), encoding="utf-8")
sizing = Sizing(str(trace), next_year=1.5, growth=(1.0, 2.0), risks=(0.05,), draws=2)
print(line_of(answer_of(size(sizing, Path("size"), Progress()), sizing), sizing))

# %% The same if SLAs were half as loose.
tight = replace(sizing, growth=(1.5,), sla=(0.5, 1.0))
curves = spread_of(size(tight, Path("size"), Progress()), ("axis", "factor", "strategy"))
print(curves[curves["axis"] == "sla"][["factor", "strategy", "nics", "violations_mean_pct"]].to_string(index=False))
