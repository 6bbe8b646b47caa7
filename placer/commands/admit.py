"""`placer admit SLOS`: which latency SLOs a GPU keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands import options
from placer.gpu.registry import METHODS
from profiles import Fault, InputError
from profiles.aside import file_aside
from profiles.faults import collect_faults

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.gpu.device import GpuDevice
    from placer.gpu.plan import LatencySlo, PlanLatencies

ADMISSION_FORMATS = ("table", "json")
PREDICTED_METHOD = "predicted"  # the method that needs models; its answers say nothing of the model of a device
AFTER_S = 1.0  # seconds after which a message says what takes so long

SlosFile = Annotated[str, options.take_argument("SLOS", "The SLOs: JSON Lines, one per line; - for standard input.")]
DeviceFile = Annotated[Path | None, options.take_option("The GPU: JSON with its size and times.", "--device")]
ModelsFolder = Annotated[
    Path | None,
    options.take_option(
        "Instead of --device: a folder written by `placer train` from the profile of a GPU.", "--models", metavar="DIR"
    ),
]
MethodName = Annotated[
    str, typer.Option("--method", help=f"The method of admission: {', '.join(METHODS.file_names())}.")
]
TimeLimit = Annotated[
    float,
    typer.Option(
        min=0.01, help="Time limit in seconds. If it is reached, the best admission so far and its bound are printed."
    ),
]
Explain = Annotated[
    bool,
    typer.Option(
        "--explain", help="For each rejected SLO, print the time of each stage, and changes that would admit it."
    ),
]
CertificateFile = Annotated[
    Path | None, options.take_option("Write device, SLOs and answer, for `placer verify`, as JSON.", "--certificate")
]
Format = Annotated[str, typer.Option(help="table or json.")]


def command(
    slos: SlosFile,
    device: DeviceFile = None,
    models: ModelsFolder = None,
    method: MethodName = "exact",
    time_limit: TimeLimit = 1.0,
    seed: options.Seed = 0,
    explain: Explain = False,
    certificate: CertificateFile = None,
    format: Format = "table",
    quiet: options.Quiet = False,
) -> None:
    """Decide which latency SLOs a GPU can keep together, with which batches, transfer orders and SMs."""
    from placer.gpu.registry import MethodSetting
    from placer.progress import Progress
    from placer.report.text.admission import admission_report, answer

    options.one_of("--format", format, ADMISSION_FORMATS)
    admit = METHODS.find(method)
    options.refuse_unwritable("--certificate", certificate)
    options.refuse_same_files({"--certificate": certificate}, {"SLOS": _path(slos), "--device": device})
    if method == PREDICTED_METHOD:
        _refuse_for_predicted(models, {"--explain": explain, "--certificate": certificate is not None})
    gpu, read, latencies = _read(slos, device, models)
    progress = Progress(quiet=quiet)
    with progress.waiting(f"admitting {len(read):,} SLOs, at most {time_limit:g} s", AFTER_S):
        admission = admit(gpu, read, MethodSetting(seed, time_limit, latencies))
    if method == PREDICTED_METHOD and latencies is not None and format == "table":
        from placer.report.text.admission import format_predicted

        typer.echo(format_predicted(admission, latencies.p99_us(admission.admitted)), nl=False)
        return
    reasons = None
    if explain:
        from placer.gpu.enough import reasons_of

        with progress.waiting(f"explaining {len(admission.rejected):,} rejections", AFTER_S):
            reasons = reasons_of(gpu, admission)
    if certificate is not None:
        from placer.inputs.gpu.slos import admission_certificate

        with file_aside(certificate) as aside:
            written = admission_certificate(gpu, read, answer(admission))
            aside.write_text(json.dumps(written) + "\n", encoding="utf-8")
    typer.echo(admission_report(gpu, admission, method, format, reasons), nl=False)


def _path(source: str) -> Path | None:
    return None if source == "-" else Path(source)


def _refuse_for_predicted(models: Path | None, given: dict[str, bool]) -> None:
    """Refuse what speaks of the model of a device, and admission by models without any."""
    if models is None:
        hint = "`placer train PROFILE --out DIR` writes them from the profile of a GPU"
        raise InputError.of("--models", f"is missing: --method {PREDICTED_METHOD} admits by models", hint=hint)
    for option in (name for name, there in given.items() if there):
        message = f"is not available with --method {PREDICTED_METHOD}, which does not use the formulas of a device"
        raise InputError.of(option, message, hint="--method exact has it")


def _read(
    slos: str, device: Path | None, models: Path | None
) -> tuple[GpuDevice, Sequence[LatencySlo], PlanLatencies | None]:
    """The GPU, the SLOs, and the latencies of plans if there are models; the faults of both files at once."""
    from placer.inputs.gpu.slos import read_device, read_slos

    if (device is None) == (models is None):
        message = "is missing" if device is None else "is given together with --models"
        raise InputError.of("--device", message, hint="name a GPU: --device FILE, or --models DIR")
    if models is not None:
        from placer.inputs.gpu.predicted_plans import PredictedPlans, describe_by
        from predictor.gpu.models import load_gpu_models

        trained = load_gpu_models(models)
        wanted = read_slos(slos, trained.nfs)
        gpu_of_models, named = describe_by(trained, wanted)
        return gpu_of_models, named, PredictedPlans(trained, {slo.id: slo.nf for slo in wanted})
    assert device is not None
    faults: list[Fault] = []
    gpu = None
    with collect_faults(faults):
        gpu = read_device(device)
    with collect_faults(faults):
        read = read_slos(slos, None if gpu is None else gpu.nfs)
    if faults:
        raise InputError(faults)
    assert gpu is not None
    return gpu, read, None
