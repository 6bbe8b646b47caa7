"""The columns of a comparison."""

from pathlib import Path

from placer.evaluate.columns import RESULT_COLUMNS, spare_cores_pct
from placer.evaluate.evaluation import evaluate
from placer.model.arrival import Arrival
from placer.model.fleet import NicKind
from placer.model.plan import Placement, Plan
from placer.model.sla import Sla
from profiles import TrafficProfile, Workload

KIND = NicKind(0, "small", 4, {"NAT": 1, "IDS": 2})


def test_spare_cores_are_counted_when_most_nics_are_in_use() -> None:
    """Two NICs of four cores with IDS, IDS and NAT, before NAT leaves: three of eight cores are spare."""
    arrivals = [
        Arrival(name, float(number), Workload(nf, TrafficProfile(1, 1, 1)), Sla(max_drop=0.1), departure)
        for number, (name, nf, departure) in enumerate((("a", "IDS", None), ("b", "NAT", 9.0), ("c", "IDS", None)))
    ]
    nics = ("nic-1", "nic-1", "nic-2")
    placements = tuple(Placement(arrival, nic, KIND) for arrival, nic in zip(arrivals, nics, strict=True))
    assert spare_cores_pct([KIND], evaluate(Plan("toy", None, placements, 0.1), [KIND], None)) == 37.5
    assert spare_cores_pct([KIND], evaluate(Plan("toy", None, (), 0.1), [KIND], None)) is None


def test_keys_and_headings_are_different() -> None:
    for names in (
        [c.key for c in RESULT_COLUMNS],
        [c.heading for c in RESULT_COLUMNS],
        [c.page for c in RESULT_COLUMNS],
    ):
        given = [name for name in names if name]
        assert len(given) == len(set(given))


def test_the_page_of_the_output_has_a_row_for_each_key() -> None:
    page = (Path(__file__).parents[3] / "docs" / "formats" / "run.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert [
        column.key for column in RESULT_COLUMNS if column.key and not any(f"`{column.key}`" in row for row in rows)
    ] == []
