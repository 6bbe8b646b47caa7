"""Studies of many runs, and the NICs to buy for next year. Read `study.py`, then `execute.py`."""

from placer.studies.execute import execute
from placer.studies.run_task import RunTask, run_task, tasks_of_study
from placer.studies.statistics import GROUP_COLUMNS, summarize
from placer.studies.study import Study, TraceSpec, read_study

__all__ = [
    "GROUP_COLUMNS", "RunTask", "Study", "TraceSpec", "execute", "read_study", "run_task", "summarize",
    "tasks_of_study",
]  # fmt: skip
