"""The planner's workbench: studies of many runs, and what to buy for next year. Read `study.py`, then `conduct.py`."""

from placer.workbench.conduct import conduct
from placer.workbench.runners import locally, on_cluster
from placer.workbench.spread import spread_of
from placer.workbench.study import Study, Trace, read_study, units_of
from placer.workbench.unit import Unit, judged

__all__ = [
    "Study",
    "Trace",
    "Unit",
    "conduct",
    "judged",
    "locally",
    "on_cluster",
    "read_study",
    "spread_of",
    "units_of",
]
