"""The planner's workbench: studies of many runs, and what to buy for next year. Read `study.py`, then `execute.py`."""

from placer.studies.execute import conduct
from placer.studies.executors import locally, on_cluster
from placer.studies.run_task import Unit, judged
from placer.studies.statistics import spread_of
from placer.studies.study import Study, Trace, read_study, units_of

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
