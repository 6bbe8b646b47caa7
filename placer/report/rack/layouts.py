"""Why chains have their layouts, as text tables and JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from placer.rack.plan import SWITCH_SITE, ChainPlan, Layout, RackPlan
from placer.rack.reasons.explain import ChainExplanation, LayoutCause, LayoutVerdict, device_names
from placer.report.text.table import text_table

LAYOUT_CAUSES = {
    LayoutCause.LATENCY: "latency above d_max",
    LayoutCause.TABLE_ORDER: "against the order of the switch's tables",
    LayoutCause.ONE_CORE: "a subgroup that may have one core only is too slow",
    LayoutCause.CORES: "too few cores",
    LayoutCause.NIC: "more than a NIC carries",
    LayoutCause.STAGES: "tables do not fit the switch's stages",
    LayoutCause.POSSIBLE: "possible",
}
"""Causes of layouts that are only counted."""


def explanation_report(plan: RackPlan, explanations: Sequence[ChainExplanation], form: str) -> str:
    """Verdicts on layouts for people (`table`) or programs (`json`, docs/formats/rack-plan.md)."""
    if form == "json":
        found = {
            "status": plan.status.value,
            "marginal_mbps": plan.marginal_mbps,
            "bound_mbps": plan.bound_mbps,
            "chains": [_chain_json(explanation) for explanation in explanations],
        }
        return json.dumps(found) + "\n"
    proof = "proven" if plan.status.value == "optimal" else "not proven to be the best"
    head = f"The plan gives {plan.marginal_mbps:,.1f} Mbps beyond the least rates; {proof}.\n"
    return "\n".join([head, *(_chain(explanation) for explanation in explanations)])


def _chain_json(one: ChainExplanation) -> dict[str, object]:
    return {
        "name": one.placed.chain.name,
        "rate_mbps": one.placed.rate_mbps,
        "placement": _placement(one.placed.layout),
        "layouts": [_verdict_json(verdict, one.placed) for verdict in one.verdicts],
        "others": [
            {"devices": list(devices), "cause": cause.value, "layouts": number}
            for (devices, cause), number in sorted(one.others.items())
        ],
    }


def _verdict_json(verdict: LayoutVerdict, placed: ChainPlan) -> dict[str, object]:
    return {
        "placement": _placement(verdict.layout),
        "differing": [nf for nfs, _ in _differing(verdict.layout, placed) for nf in nfs],
        "cause": verdict.cause.value,
        "of": verdict.of or None,
        "needs": verdict.needs,
        "has": verdict.has,
        "marginal_mbps": verdict.marginal_mbps,
        "cost_mbps": verdict.cost_mbps,
        "proven": verdict.proven,
        "changes": dict(verdict.changes),
    }


def _placement(layout: Layout) -> dict[str, str]:
    return {nf.id: _site(layout, at) for at, nf in enumerate(layout.chain.nfs)}


def _site(layout: Layout, at: int) -> str:
    site = layout.sites[at]
    return "switch" if site == SWITCH_SITE else layout.rack.devices[site].label


def _chain(one: ChainExplanation) -> str:
    layout = one.placed.layout
    where = "; ".join(
        f"{' '.join(layout.chain.nfs[at].id for at in nfs)} on {name}"
        for name, nfs in ((name, list(nfs)) for name, nfs in groupby(layout.chain.order, lambda at: _site(layout, at)))
    )
    head = f"{layout.chain.name}, {one.placed.rate_mbps:,.1f} Mbps: {where}\n"
    first = list(dict.fromkeys(device_names(verdict.layout) for verdict in one.verdicts))
    ordered = sorted(one.verdicts, key=lambda verdict: first.index(device_names(verdict.layout)))
    rows = [
        [" ".join(device_names(verdict.layout)), _instead(verdict.layout, one.placed), _words(verdict)]
        for verdict in ordered
    ]
    table = text_table(["devices", "instead", "verdict"], rows) if rows else "It has no other layout.\n"
    return head + table + "".join(f"{line}\n" for line in _others(one.others))


def _differing(layout: Layout, placed: ChainPlan) -> Iterator[tuple[list[str], str]]:
    """NFs that are elsewhere than in the plan, by device."""
    by_site: dict[str, list[str]] = {}
    for at, nf in enumerate(layout.chain.nfs):
        if layout.sites[at] != placed.layout.sites[at]:
            by_site.setdefault(_site(layout, at), []).append(nf.id)
    yield from ((nfs, site) for site, nfs in by_site.items())


def _instead(layout: Layout, placed: ChainPlan) -> str:
    return ", ".join(f"{' '.join(nfs)} on {site}" for nfs, site in _differing(layout, placed)) or "as in the plan"


def _words(verdict: LayoutVerdict) -> str:
    needs, has = verdict.needs or 0.0, verdict.has or 0.0
    match verdict.cause:
        case LayoutCause.LATENCY:
            return f"latency {needs:,.2f} us, {needs - has:,.2f} us above d_max"
        case LayoutCause.ONE_CORE:
            return f"{verdict.of} may have one core, with {has:,.1f} Mbps, below t_min by {needs - has:,.1f}"
        case LayoutCause.CORES:
            return f"needs {needs:g} cores of {verdict.of}, which has {has:g}"
        case LayoutCause.NIC:
            return f"needs {needs:,.1f} Mbps of the NIC of {verdict.of}, which carries {has:,.1f}"
        case LayoutCause.OTHERS:
            return "then other chains cannot keep their SLOs"
        case LayoutCause.UNKNOWN:
            return "no plan with it was found; that there is none is not proven"
        case LayoutCause.AS_GOOD:
            return "as good"
        case LayoutCause.COSTS | LayoutCause.BETTER:
            return _cost(verdict)
        case _:
            return LAYOUT_CAUSES[verdict.cause]


def _cost(verdict: LayoutVerdict) -> str:
    cost = verdict.cost_mbps or 0.0
    if verdict.cause is LayoutCause.BETTER:
        words = f"{'' if verdict.proven else 'at least '}{-cost:,.1f} Mbps better than the plan"
    else:
        words = f"costs {'' if verdict.proven else 'at most '}{cost:,.1f} Mbps"
    changes = sorted(verdict.changes.items(), key=lambda change: -abs(change[1]))
    return f"{words}: " + ", ".join(f"{name} {mbps:+,.1f}" for name, mbps in changes)


def _others(others: Mapping[tuple[tuple[str, ...], LayoutCause], int]) -> Iterator[str]:
    """A line per set of devices."""
    by_devices: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    for (devices, cause), number in others.items():
        by_devices.setdefault(devices, []).append((number, LAYOUT_CAUSES[cause]))
    for devices, counts in sorted(by_devices.items()):
        words = ", ".join(f"{number:,} {cause}" for number, cause in sorted(counts, reverse=True))
        yield f"Not shown, on {' '.join(devices)}: {words}"
