"""How long events stay in the log, and which of them may go; of a state of either kind."""

from __future__ import annotations

from dataclasses import dataclass

from placer.fleet.state.tables import Tables
from profiles import InputError

MARK_SECONDS = 60  # how often a state notes the number of its last event with the time, so that events have an age
STEP_EVENTS = 5_000  # events that are deleted at once, between two commits
WEBHOOK_SECONDS = 7 * 86_400  # how long events are kept that a webhook has not had

SECONDS_PER_UNIT = {"d": 86_400, "h": 3_600}
LONGEST_NUMBER = 12

CREATE_MARKS = "CREATE TABLE IF NOT EXISTS log_times (number BIGINT PRIMARY KEY, seconds BIGINT NOT NULL)"


@dataclass(frozen=True, slots=True)
class Retention:
    """The newest events that are kept, or the seconds for which all are; one of both.

    `webhook`: the row of what is learnt that says what the receiver of a webhook has had; None without one.
    """

    events: int | None = None
    seconds: int | None = None
    webhook: str | None = None

    @classmethod
    def read(cls, text: str | None, webhook: str | None) -> Retention | None:
        """That of `--keep-log`: a number of events, or days or hours, such as 30d; None where nothing is given.

        Raises InputError for other text.
        """
        if text is None:
            return None
        number, unit = (text[:-1], text[-1]) if text[-1:] in SECONDS_PER_UNIT else (text, "")
        if not (number.isascii() and number.isdigit() and 0 < len(number) <= LONGEST_NUMBER and int(number)):
            raise InputError.of("--keep-log", f"'{text}' is no number of events or days", hint="as in 100000, 30d, 12h")
        if unit:
            return cls(seconds=int(number) * SECONDS_PER_UNIT[unit], webhook=webhook)
        return cls(events=int(number), webhook=webhook)


def last_to_delete(retention: Retention, tables: Tables, last: int, sent: int, now: float) -> int:
    """The number of the last event that is no longer kept; 0 where all are.

    `last`: the number of the last event. `sent`: that of the last one that the webhook has had. `now`: in seconds.
    """
    if retention.events is not None:
        found = last - retention.events
    else:
        assert retention.seconds is not None
        found = _last_before(tables, now - retention.seconds)
    if retention.webhook is not None:
        found = min(found, max(sent, _last_before(tables, now - WEBHOOK_SECONDS)))
    return max(found, 0)


def _last_before(tables: Tables, seconds: float) -> int:
    """The number of the last event that is known to be older."""
    query = f"SELECT coalesce(max(number), 0) FROM log_times WHERE seconds <= {int(seconds)}"  # noqa: S608
    ((found,),) = tables.execute(query)
    return int(found)


def delete_events(tables: Tables, upto: int) -> None:
    """Delete the events up to a number, and what is known of their times."""
    for table in ("log", "log_times"):
        tables.execute(f"DELETE FROM {table} WHERE number <= {upto}")  # noqa: S608
