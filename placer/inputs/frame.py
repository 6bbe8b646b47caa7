"""A pandas DataFrame as a trace: its text for the one reader of arrivals, and faults of that text by row."""

import csv
import io
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from placer.inputs.arrivals import ARRIVAL_COLUMNS
from profiles import Fault, InputError

FRAME_NAME = "DataFrame"
FORMER_INDEX = "Unnamed: 0"  # the column that `pandas.read_csv` makes of an index that was written to a file


class FrameText(io.StringIO):
    """A frame as the text of a CSV file. Its index is left out, unless it is a column of arrivals, such as `id`.
    Timestamps are written as ISO 8601, durations in seconds, and missing values as empty cells. `frame`: the frame.
    Raises `InputError` when its columns have names of several levels."""

    name = FRAME_NAME

    def __init__(self, frame: pd.DataFrame) -> None:
        if frame.columns.nlevels > 1:
            raise InputError.of(
                FRAME_NAME, "the names of its columns have several levels", hint="give each column one name"
            )
        named = [level for level in frame.index.names if level in ARRIVAL_COLUMNS and level not in frame.columns]
        written = frame.reset_index(named) if named else frame
        if len(written.columns) and written.columns[0] == FORMER_INDEX:
            written = written.iloc[:, 1:]
        super().__init__(written.apply(_as_written).to_csv(index=False, lineterminator="\n"))


def _as_written(column: pd.Series) -> pd.Series:
    if pd.api.types.is_datetime64_any_dtype(column):
        return column.map(pd.Timestamp.isoformat, na_action="ignore")
    if pd.api.types.is_timedelta64_dtype(column):
        seconds: pd.Series = column.dt.total_seconds()
        return seconds
    return column


def frame_faults(faults: Sequence[Fault], frame: pd.DataFrame) -> list[Fault]:
    """Faults of the frame's text, by the labels of its rows; rows are counted from 0 where labels are not unique."""
    labels = frame.index if frame.index.is_unique else pd.RangeIndex(len(frame))
    reader = csv.reader(FrameText(frame))
    last_lines = [reader.line_num for _ in reader][1:]

    def label(line: int) -> str:
        return str(labels[bisect_left(last_lines, line)])

    def of_row(fault: Fault) -> Fault:
        if fault.file != FRAME_NAME:
            return fault
        row = "" if fault.line in (None, 1) else f":{label(fault.line)}"
        message = re.sub(r"\bon line (\d+)$", lambda line: f"in row {label(int(line[1]))}", fault.message)
        hint = fault.hint and re.sub(r"\bfile\b", FRAME_NAME, fault.hint)
        return replace(fault, file=f"{FRAME_NAME}{row}", line=None, message=message, hint=hint)

    return [of_row(fault) for fault in faults]
