"""`placer chain SUBCOMMAND`: chains of NFs. Each subcommand is one file, `chain_NAME.py`."""

from __future__ import annotations

import typer

from placer.commands import (
    chain_compile,
    chain_exec,
    chain_explain,
    chain_place,
    chain_predict,
    chain_replan,
    chain_scale,
)

app = typer.Typer(
    help="Predict chains of NFs from the profiles of single ones, and place chains on a rack.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def chains() -> None:
    """Predict chains of NFs from the profiles of single ones, and place chains on a rack."""


app.command("predict")(chain_predict.command)
app.command("scale")(chain_scale.command)
app.command("place")(chain_place.command)
app.command("replan")(chain_replan.command)
app.command("explain")(chain_explain.command)
app.command("compile")(chain_compile.command)
app.command("exec")(chain_exec.command)
