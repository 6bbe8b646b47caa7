"""Runs a benchmark by its name, with options of its own: `python -m benches NAME`; `all` runs each without options."""

import importlib
import pkgutil

import benches
from benches.bench import app

for module in pkgutil.iter_modules(benches.__path__):
    if not module.name.startswith("__"):
        importlib.import_module(f"benches.{module.name}")
NAMES = [str(command.name) for command in app.registered_commands]


@app.command("all")
def run_all() -> None:
    """Run all of them one after the other; some take half an hour."""
    for name in NAMES:
        app([name], standalone_mode=False)


if __name__ == "__main__":  # benchmarks start processes that import this file
    app(prog_name="python -m benches")
