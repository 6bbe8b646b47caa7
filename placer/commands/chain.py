"""`placer chain SUBCOMMAND`: chains of NFs. Their subcommands are in `chain_*.py`."""

import typer

from placer.commands import chain_compile, chain_explain, chain_place, chain_predict, chain_run, chain_scale
from placer.commands.options import Command, Group

app = typer.Typer(
    cls=Group,
    help="Predict chains of NFs from the profiles of single NFs, place them on a rack, and compile plans.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def subcommands() -> None:
    """Predict chains of NFs from the profiles of single NFs, place them on a rack, and compile plans."""


app.command("predict", cls=Command)(chain_predict.command)
app.command("scale", cls=Command)(chain_scale.command)
app.command("place", cls=Command)(chain_place.command)
app.command("replan", cls=Command)(chain_explain.replan)
app.command("explain", cls=Command)(chain_explain.explain)
app.command("compile", cls=Command)(chain_compile.compile_plan)
app.command("exec", cls=Command)(chain_compile.execute)
app.command("run", cls=Command)(chain_run.run)
app.command("update", cls=Command)(chain_compile.update)
