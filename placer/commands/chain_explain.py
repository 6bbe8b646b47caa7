"""`placer chain explain`: why chains have their layouts, and what others would cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands.chain_place import (
    AFTER_S,
    FORMATS,
    ChainsFile,
    Format,
    RackFile,
    TimeLimit,
    late_messages,
    note_cycles_alone,
    note_parameters,
    read_chains_and_rack,
)
from placer.commands.options import Quiet, one_of
from profiles import InputError
from profiles.faults import suggestion

if TYPE_CHECKING:
    from placer.chains.chain import Chain
    from placer.chains.plan import RackPlan
    from placer.chains.rack import Rack
    from placer.chains.reasons.explain import ChainExplanation, LayoutQuestions

ChainName = Annotated[str | None, typer.Option("--chain", help="One chain; by default all.", show_default=False)]
Placement = Annotated[
    str | None,
    typer.Option(
        metavar="NF=DEVICE ...",
        help="What if NFs of the chain were there: 'ACL=switch LB=s0'. Those that are not named may be anywhere.",
        show_default=False,
    ),
]
Layouts = Annotated[
    int, typer.Option(min=1, help="Layouts per chain, those with the fewest NFs elsewhere than in the plan first.")
]


def command(
    chains: ChainsFile,
    rack: RackFile,
    chain: ChainName = None,
    placement: Placement = None,
    layouts: Layouts = 10,
    time_limit: TimeLimit = 60.0,
    format: Format = "table",
    quiet: Quiet = False,
) -> None:
    """Explain the best plan: for layouts that a chain does not have, what forbids them or what they cost."""
    from placer.chains.place import best_plan
    from placer.chains.reasons.explain import LayoutQuestions
    from placer.chains.reasons.infeasible import explained
    from placer.progress import Progress
    from placer.report.text.layouts import explanation_report
    from placer.report.text.rack import rack_report

    one_of("--format", format, FORMATS)
    read, on = read_chains_and_rack(chains, rack)
    numbers = _numbers(read.chains, chain)
    places = None if placement is None else _places(placement, read.chains, numbers, on)
    progress = Progress(quiet=quiet)
    note_parameters(read.chains, progress)
    note_cycles_alone(on, progress)
    with progress.waiting(f"placing {len(read.chains)} chains, at most {time_limit:g} s", AFTER_S):
        plan = best_plan(read.chains, on, time_limit=time_limit, notify=late_messages(progress))
    if not plan.chains:
        with progress.waiting(f"looking for what would be enough, at most {time_limit:g} s", AFTER_S):
            plan = explained(plan, read.chains, seconds=time_limit)
        typer.echo(rack_report(plan, "optimal", format), nl=False)
        return
    questions = LayoutQuestions(plan, time_limit)
    with progress.waiting(f"looking at other layouts, at most {time_limit:g} s", AFTER_S):
        if places is not None:
            found = [_what_if(questions, plan, numbers[0], places)]
        else:
            found = [questions.explanation(number, layouts) for number in numbers]
    typer.echo(explanation_report(plan, found, format), nl=False)


def _numbers(chains: Sequence[Chain], name: str | None) -> list[int]:
    names = [chain.name for chain in chains]
    if name is None:
        return list(range(len(names)))
    if name not in names:
        raise InputError.of("--chain", f"there is no chain {name!r}", hint=suggestion(name, names))
    return [names.index(name)]


def _places(text: str, chains: Sequence[Chain], numbers: Sequence[int], rack: Rack) -> dict[str, int]:
    """Sites by NF."""
    from placer.chains.layout import SWITCH
    from placer.chains.layouts import possible_sites

    if len(numbers) > 1:
        raise InputError.of("--placement", "needs a chain", hint=f"--chain {chains[0].name}")
    chain = chains[numbers[0]]
    ids = [nf.id for nf in chain.nfs]
    devices = {device.name: number for number, device in enumerate(rack.devices)} | {"switch": SWITCH}
    possible = possible_sites(chain, rack)
    places: dict[str, int] = {}
    for part in text.replace(",", " ").split():
        nf, equals, on = part.partition("=")
        if not (nf and equals and on):
            raise InputError.of("--placement", f"{part!r} is not of the form NF=DEVICE", hint="as in ACL=switch")
        if nf not in ids:
            raise InputError.of("--placement", f"{chain.name} has no NF {nf!r}", hint=suggestion(nf, ids))
        if on not in devices:
            raise InputError.of("--placement", f"there is no device {on!r}", hint=suggestion(on, list(devices)))
        if nf in places:
            raise InputError.of("--placement", f"{nf!r} is given twice")
        if devices[on] not in possible[ids.index(nf)]:
            raise InputError.of("--placement", f"{chain.nfs[ids.index(nf)].nf} does not run on {on}")
        places[nf] = devices[on]
    if not places:
        raise InputError.of("--placement", "names no NF", hint="as in ACL=switch")
    return places


def _what_if(questions: LayoutQuestions, plan: RackPlan, number: int, places: dict[str, int]) -> ChainExplanation:
    """The best layout with some NFs on given devices, or what forbids the one nearest to the plan's."""
    from placer.chains.layout import Layout
    from placer.chains.reasons.explain import ChainExplanation, with_places

    placed = plan.chains[number]
    sites = tuple(places.get(nf.id, site) for nf, site in zip(placed.chain.nfs, placed.layout.sites, strict=True))
    nearest = questions.verdict(number, Layout(placed.chain, plan.rack, sites))
    if len(places) < len(sites) and (layouts := with_places(placed.chain, plan.rack, places)):
        best = questions.best_of(number, layouts)
        nearest = best if best.marginal_mbps is not None else nearest
    return ChainExplanation(placed, (nearest,), {})
