"""The eleven NATs: stages and plans are those that the paper gives."""

from __future__ import annotations

from matplotlib.figure import Figure

from experiments import Setting, find_experiment


def test_eleven_nats_are_placed_as_published() -> None:
    """Ten of them fit twelve stages; of the strategies, only the heuristic and the optimum have a plan."""
    result = find_experiment("lemur-nats").run(Setting())
    ours = dict(zip(result.table["quantity"], result.table["ours"], strict=True))
    assert [ours[name] for name in ours if name.startswith("stages")] == [12, 14, 27, 13]
    assert {name for name in ours if name.startswith("plan of") and ours[name]} == {"plan of lemur"}
    assert ours["NATs on the switch, lemur"] == 10
    assert not result.table["verdict"].any()
    assert all(sentence.endswith(".") for sentence in (*result.testbeds, *result.notes))
    figure = Figure()
    result.draw(figure)
    assert figure.axes[0].get_xlabel() == "stages"
