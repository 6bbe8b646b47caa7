"""`placer pack FILE`."""

import json
from pathlib import Path
from typing import Annotated

import typer

File = Annotated[Path, typer.Argument(metavar="FILE.vbp", help="Items and bins: a .vbp file.", show_default=False)]
TimeLimit = Annotated[
    float,
    typer.Option(min=0.1, help="Time limit in seconds. If it is reached, the best packing and its bound are printed."),
]
Solver = Annotated[str, typer.Option(help="cp-sat or highs.")]


def command(file: File, time_limit: TimeLimit = 60.0, solver: Solver = "cp-sat") -> None:
    """Pack items with sizes in several dimensions into the fewest bins, with the solver of the optimum."""
    from placer.optimal import refuse_unknown
    from placer.optimal.packing import pack, read_vbp

    refuse_unknown(solver)
    packed = pack(read_vbp(file), time_limit=time_limit, solver=solver)
    result = {
        "bins": len(packed.assignment),
        "lower_bound": packed.lower_bound,
        "proven": packed.proven,
        "seconds": round(packed.seconds, 4),
        "assignment": packed.assignment,
    }
    typer.echo(json.dumps(result))
