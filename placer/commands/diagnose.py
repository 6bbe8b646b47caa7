"""`placer diagnose NF`."""

from __future__ import annotations

from contextlib import ExitStack
from math import inf
from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands import options
from placer.model.nic_kind import kpps_of
from profiles import ATTRIBUTES, InputError, TrafficProfile, Workload
from profiles.text import number_of

if TYPE_CHECKING:
    from placer.model.catalogue import Catalogue

Nf = Annotated[
    str,
    options.take_argument(
        "NF",
        "NF or NF:flows=N,packet_size=N,mtbr=N, also with rate_kpps=N or rate_gbps=N, and cores=N.",
        autocompletion=options.complete_nf,
    ),
]
Beside = Annotated[
    list[str] | None,
    options.take_option(
        "An NF on the same NIC, in the same format as NF; repeatable.", autocompletion=options.complete_nf
    ),
]
CORES = "cores"
OFFERS = {
    "rate_kpps": "a rate is above 0",
    "rate_gbps": "a rate is above 0",
    CORES: "a number of cores is whole and above 0",
}
"""What is offered and given to an NF, each with its rule."""
Along = Annotated[
    list[str] | None,
    typer.Option(help="Traffic attribute to vary: mtbr, flows or packet_size. Repeatable; by default all."),
]
Steps = Annotated[int, typer.Option(min=2, max=1000, help="Readings per attribute.")]
Format = Annotated[str, typer.Option(help="table, json or csv.")]


def command(
    context: typer.Context,
    nf: Nf,
    beside: Beside = None,
    along: Along = None,
    steps: Steps = 12,
    models: options.ModelsDir = None,
    predictor: options.OnePredictor = "tomur",
    testbed: options.TestbedSpec = None,
    format: Format = "table",
    report: options.Report = None,
    plots: options.Plots = None,
    quiet: options.Quiet = False,
) -> None:
    """Find the bottleneck of an NF in a co-location, and the traffic at which the bottleneck changes.

    On the simulated card, the true bottleneck is shown next to the predicted one. Of an NF at an offered rate, the
    output says on how many cores it carries that load."""
    from dataclasses import replace

    from placer.explain.bottleneck import choose_cores, core_needs, diagnose
    from placer.explain.solo_formula import solo_formula
    from placer.inputs.catalogue import Cards, open_catalogue
    from placer.progress import Progress
    from placer.report.text.diagnosis import DIAGNOSIS_FORMATS
    from profiles.aside import write_files

    render = DIAGNOSIS_FORMATS[options.one_of("--format", format, DIAGNOSIS_FORMATS)]
    options.refuse_unwritable("--report", report)
    options.refuse_unwritable_folder("--plots", plots)
    names = [options.one_of("--along", name, ATTRIBUTES) for name in along or ATTRIBUTES]
    with ExitStack() as stack:
        catalogue = open_catalogue(Cards(models=models, testbed=testbed), stack, Progress(quiet=quiet).say)
        trained = catalogue.models[0]
        chosen = trained.predictors[options.one_of("--predictor", predictor, trained.predictors)]
        workload = _workload("NF", nf, catalogue)
        neighbours = [catalogue.request(_workload("--beside", text, catalogue)) for text in beside or []]
        catalogue.refuse_without_loads(predictor, (workload, *neighbours))
        needs = () if workload.is_saturated else core_needs(chosen, catalogue.kinds[0], workload, neighbours)
        if len(needs) > 1 and not workload.cores:
            workload = replace(workload, cores=choose_cores(needs))
        _refuse_too_many_cores([workload, *neighbours], catalogue)
        if trained.testbed is None:
            raise InputError.of("--models", "came from a profile that declares no range of traffic")
        ranges = {name: trained.testbed.attributes[name] for name in names if name in trained.testbed.attributes}
        diagnosis = diagnose(chosen, workload, neighbours, ranges, testbed=catalogue.testbeds[0], steps=steps)
        diagnosis = replace(diagnosis, solo=solo_formula(trained, chosen, workload, ranges), needs=needs)
    text = render(diagnosis)
    if report is not None or plots is not None:
        from placer.report.html import page_files
        from placer.report.html.diagnosis import page_of_diagnosis

        write_files(page_files(page_of_diagnosis(diagnosis), report, plots, made_by=options.command_line(context)))
    typer.echo(text, nl=False)


def _workload(option: str, text: str, catalogue: Catalogue) -> Workload:
    """An NF at the given traffic, rate and cores; attributes that are left out have their default."""
    name, _, settings = text.partition(":")
    traffic = catalogue.default_traffic.as_dict()
    hint, offer = "as in FlowMonitor:flows=16000,mtbr=80", dict[str, float]()
    for part in filter(None, settings.split(",")):
        attribute, _, value = part.partition("=")
        number = number_of(value)
        if number is None:
            raise InputError.of(option, f"'{value}' is not a number", column=attribute, hint=hint)
        known = options.one_of(option, attribute.strip(), (*ATTRIBUTES, *OFFERS))
        if known in OFFERS and not (number > 0 and (known != CORES or number.is_integer())):
            raise InputError.of(option, f"{value} is refused", column=known, hint=OFFERS[known])
        (offer if known in OFFERS else traffic)[known] = number
    if len(offer.keys() - {CORES}) > 1:
        raise InputError.of(option, "has two rates", hint="give rate_kpps or rate_gbps")
    rate = offer.get("rate_kpps", kpps_of(offer.get("rate_gbps", inf), traffic["packet_size"]))
    workload = Workload(name, TrafficProfile.from_mapping(traffic), rate, cores=int(offer.get(CORES, 0)))
    for column, message in catalogue.check(workload):
        given = "rate_gbps" if column == "rate_kpps" and "rate_gbps" in offer else column
        raise InputError.of(option, message, column=given)
    return workload


def _refuse_too_many_cores(co_location: list[Workload], catalogue: Catalogue) -> None:
    kind = catalogue.kinds[0]
    taken = kind.cores_taken(co_location)
    if taken > kind.cores:
        raise InputError.of("--beside", f"together they need {taken} cores, a {kind.model} has {kind.cores}")
    if not kind.fits(co_location):
        raise InputError.of("--beside", f"together their packets take more than the port of a {kind.model} carries")
