"""What every result of an experiment has."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from experiments import Experiment, Paper, Result, Setting, find_experiment

Results = dict[str, tuple[Experiment, Result]]


def run_with_few(names: Sequence[str]) -> Results:
    """The experiments of these names with their results, on few runs."""
    return {name: (find_experiment(name), find_experiment(name).run(Setting(scale=0.02))) for name in names}


def draw(result: Result) -> Figure:
    """The plot of a result, of which testbeds and notes are sentences."""
    assert all(sentence.endswith(".") for sentence in (*result.testbeds, *result.notes))
    figure = Figure()
    result.draw(figure)
    return figure


def refuse_incomplete(one: Experiment, result: Result, paper: Paper) -> None:
    """Fail where a result lacks published numbers, verdicts, sentences, or names of axes."""
    assert one.paper == paper
    assert "verdict" in result.table and any("published" in str(column) for column in result.table)
    assert all(axes.get_xlabel() or axes.get_ylabel() for axes in draw(result).axes)
