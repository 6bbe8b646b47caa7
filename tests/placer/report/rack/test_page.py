"""Plans of chains as text and as a page: what is known of them, in a sentence, and what drawings hold."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from xml.etree import ElementTree

import pytest

from placer.rack.files.json_twins import rack_of
from placer.rack.plan import Limit, LimitChange, RackPlan, Status
from placer.rack.strategies.optimal import best_plan
from placer.report.html import Page, Picture
from placer.report.html.page import render
from placer.report.html.theme import on_paper
from placer.report.rack import page as rack_page
from placer.report.rack.plan import rack_report
from tests.placer.rack.lemur import chains, rack, rack_json

SVG = "{http://www.w3.org/2000/svg}"


@cache
def best() -> RackPlan:
    """Chains 1 and 2, at half their base rates."""
    return best_plan(chains((1, 2), 0.5), rack())


def shapes(drawing: bytes, name: str) -> list[dict[str, str]]:
    return [dict(one.attrib) for one in ElementTree.fromstring(drawing).iter(f"{SVG}{name}")]


def words(drawing: bytes) -> list[str]:
    return [str(one.text) for one in ElementTree.fromstring(drawing).iter(f"{SVG}text")]


def page(plan: RackPlan) -> Page:
    return rack_page.page_of_rack_plan(plan, "optimal", "edge.chains")


def test_the_page_says_what_the_plan_carries_and_that_it_is_proven() -> None:
    said = " ".join(page(best()).summary)
    gbps = sum(one.rate_mbps for one in best().chains) / 1000
    assert f"optimal places 2 chains, which carry {gbps:,.2f} Gbps and keep their SLOs." in said
    assert "No plan gives more, which is proven." in said
    assert [section.name for section in page(best()).sections] == ["rack", "use", "chains", "paths"]


@pytest.mark.parametrize(
    ("bound", "sentence"), [(2.0, "no plan gives more than"), (None, "How much more is possible is not known.")]
)
def test_without_a_proof_the_page_gives_the_gap(bound: float | None, sentence: str) -> None:
    bound_mbps = None if bound is None else bound * best().marginal_mbps
    plan = replace(best(), status=Status.FEASIBLE, bound_mbps=bound_mbps)
    assert sentence in " ".join(page(plan).summary)
    assert page(plan).tiles[2].value == ("unknown" if bound is None else "50.00 %")


def test_without_a_plan_the_page_has_the_reason() -> None:
    found = page(RackPlan(rack(), Status.INFEASIBLE))
    assert found.summary[0].startswith("Infeasible, proven") and not found.sections
    assert "Infeasible, proven" in render(found)


def test_the_rack_has_a_cell_for_each_core_in_the_colour_of_its_chain() -> None:
    """Fourteen cores, two that are reserved, and an NF of each colour on the switch."""
    plan = best()
    boxes = Counter(
        box["fill"] for box in shapes(rack_page.rack_drawing(plan, "of 12"), "rect") if box["height"] == "14.0"
    )
    for number, one in enumerate(plan.chains):
        assert boxes[rack_page.colour_of(number)] == sum(one.cores) + len(one.layout.on_switch)
    assert boxes[on_paper("line")] == 2
    assert boxes[on_paper("ground")] == 14 - sum(sum(one.cores) for one in plan.chains)


def test_links_are_as_long_as_what_they_carry() -> None:
    """The parts of a link add up to its use."""
    drawing = rack_page.rack_drawing(best(), "")
    colours = {rack_page.colour_of(number) for number in range(2)}
    parts = sum(float(box["width"]) for box in shapes(drawing, "rect")
                if box["height"] == "10.0" and box["fill"] in colours)  # fmt: skip
    whole = sum(float(box["width"]) for box in shapes(drawing, "rect")
                if box["height"] == "12.0" and box["fill"] == on_paper("ground"))  # fmt: skip
    used = rack_page.use_table(best()).set_index("resource")["used, %"]
    assert 100 * parts / whole == pytest.approx((used["s0: link in"] + used["s0: link out"]) / 2, abs=0.1)


def test_of_many_servers_those_with_most_cores_in_use_are_drawn() -> None:
    """Chain 2 takes one of twenty servers."""
    on = rack(servers=[rack_json()["servers"][0] | {"name": f"s{number}"} for number in range(20)])
    plan = best_plan(chains((2,), 0.5), rack())
    moved = tuple(replace(one, layout=replace(one.layout, rack=on)) for one in plan.chains)
    plan = replace(plan, rack=on, chains=moved)
    drawn = rack_page.draw_servers(plan)
    assert len(drawn) == rack_page.MOST_SERVERS and drawn[0] == 0
    assert "16 of 20 servers" in page(plan).sections[0].text and len(rack_page.use_table(plan)) == 3 * 20


def test_a_path_has_all_nfs_shares_and_cores() -> None:
    """A lane for the switch and for the server; as many lines as edges at least."""
    one = best().chains[0]
    drawing = rack_page.chain_drawing(one, rack_page.colour_of(0))
    said = words(drawing)
    assert {nf.id for nf in one.chain.nfs} <= set(said) and {"switch", "s0"} <= set(said)
    assert said.count("1/2") == 4
    assert [word for word in said if word.endswith(("core", "cores"))] == [
        f"{cores} core" if cores == 1 else f"{cores} cores" for cores in one.cores
    ]
    assert len(shapes(drawing, "path")) >= len(one.chain.edges)


def test_names_cannot_break_a_drawing() -> None:
    one = best().chains[0]
    chain = replace(one.chain, nfs=(replace(one.chain.nfs[0], id="<a&b>"), *one.chain.nfs[1:]), name="<c>")
    renamed = replace(one, layout=replace(one.layout, chain=chain))
    assert "<a&b>" in words(rack_page.chain_drawing(renamed, "#000000"))
    assert "<c>" in words(rack_page.rack_drawing(replace(best(), chains=(renamed,)), ""))


def test_stages_in_use_are_the_fewest_that_fit() -> None:
    """Two tables one after the other need two stages, of the ten that are not reserved."""
    nfs = {"A": {"switch": {"blocks": 1}}}
    switch = {"stages": 12, "reserved_stages": 2, "blocks_per_stage": 1}
    on = rack_of({"switch": switch, "crossing_us": 6, "servers": [], "nfs": nfs}, "rack")
    (chain,) = chains((3,), 0)
    two = replace(chain, nfs=tuple(replace(nf, nf="A") for nf in chain.nfs[:2]), edges=chain.edges[:1])
    plan = best_plan([replace(two, slo=replace(two.slo, t_min_mbps=Fraction(0)))], on)
    assert rack_page.least_stages(plan) == 2
    row = rack_page.use_table(plan).set_index("resource").loc["switch: stages"]
    assert (row["used"], row["of"], row["used, %"]) == (2, 10, 20)
    assert "they need 2 of its 10 stages" in words(rack_page.rack_drawing(plan, "they need 2 of its 10 stages"))[-1]


def test_pictures_are_in_the_page_itself() -> None:
    """As data; the same plan gives the same bytes."""
    pictures = [one for section in page(best()).sections for one in section.figures if isinstance(one, Picture)]
    assert len(pictures) == 3
    html = render(page(best()))
    assert all(one.source in html for one in pictures) and html == render(page(best()))
    assert "http://" not in html.split("<script")[0]


def text(plan: RackPlan, strategy: str = "optimal") -> str:
    return rack_report(plan, strategy, "table")


def test_a_plan_says_how_good_it_is_known_to_be() -> None:
    """Chain 3 alone: 8 Gbps beyond its least rate."""
    best = best_plan(chains((3,), 0.5), rack())
    mbps = best.marginal_mbps
    assert "Optimal, proven: no plan gives more. Solved in" in text(best)
    with_gap = replace(best, status=Status.FEASIBLE, bound_mbps=2 * mbps)
    assert f"No plan gives more than {2 * mbps:,.1f} Mbps beyond the least rates: the gap is 50.00 %." in text(with_gap)
    assert "Not proven optimal, without a bound." in text(replace(best, status=Status.FEASIBLE, bound_mbps=None))


def test_slack_is_what_the_latency_is_below_d_max() -> None:
    (chain,) = chains((3,), 0.5)
    chain = replace(chain, slo=replace(chain.slo, d_max_us=chain.slo.t_min_mbps * 0 + 45))
    row = text(best_plan([chain], rack())).splitlines()[1].split()
    assert float(row[4]) + float(row[5]) == pytest.approx(45)


def test_without_a_plan_it_says_what_is_known() -> None:
    assert text(RackPlan(rack(), Status.INFEASIBLE)).startswith("Infeasible, proven: no plan keeps the SLOs")
    assert "within the time limit. That there is none is not proven." in text(RackPlan(rack(), Status.UNKNOWN))
    noted = text(RackPlan(rack(), Status.UNKNOWN, notes=("more subgroups than cores",)), "greedy")
    assert noted.splitlines()[:2] == [
        "greedy finds no plan. Another strategy may find one.",
        "greedy: more subgroups than cores.",
    ]


def test_a_conflict_and_what_would_be_enough_are_worded() -> None:
    """Rounded to the side that is enough."""
    changes = [("t_min", "c", 597.019), ("d_max", "c", 35.001), ("cores", "s0", 18), ("nic_mbps", "s0", 40_000.001),
               ("blocks", "switch", 25)]  # fmt: skip
    plan = RackPlan(
        rack(),
        Status.INFEASIBLE,
        conflict=(Limit("t_min", "c"), Limit("nic_mbps", "s0")),
        changes=tuple(LimitChange(Limit(kind, of), to) for kind, of, to in changes),
    )
    assert text(plan).splitlines()[1:-1] == [
        "These limits cannot be kept together: t_min of c, NIC of s0.",
        "Each of these changes is enough alone:",
        "  c: t_min at most 597.01 Mbps",
        "  c: d_max at least 35.01 us",
        "  s0: 18 cores",
        "  s0: a NIC of 40,000.01 Mbps",
        "  switch: 25 blocks per stage",
    ]
