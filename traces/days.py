"""Loads over a day of 24 hours, for generated traces."""

from collections.abc import Mapping
from types import MappingProxyType

OFFICE = (5, 5, 5, 5, 5, 10, 20, 50, 90, 100, 100, 90, 80, 90, 100, 100, 90, 60, 30, 20, 10, 10, 5, 5)
EVENING = (30, 20, 10, 10, 5, 5, 10, 20, 30, 30, 30, 30, 40, 40, 40, 50, 50, 60, 80, 90, 100, 100, 80, 50)
NIGHT = (100, 100, 100, 100, 80, 30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20, 50, 80, 100)

HOURS: Mapping[str, tuple[float, ...]] = MappingProxyType({
    name: tuple(percent / 100 for percent in percents)
    for name, percents in (("office", OFFICE), ("evening", EVENING), ("night", NIGHT))
})  # fmt: skip
"""By name, the share of its rate that is offered to an instance in each hour: people at work, people at home, backups.
"""


def day_csv() -> str:
    """These as the file of `placer run --loads`."""
    header = ",".join(["name", *(str(hour) for hour in range(1, 25))])
    rows = [",".join([name, *(f"{share:g}" for share in shares)]) for name, shares in HOURS.items()]
    return "\n".join([header, *rows]) + "\n"
