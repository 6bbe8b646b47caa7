"""Faults as the user reads them."""

from __future__ import annotations

from profiles import Fault, InputError


def test_a_fault_shows_file_line_and_column() -> None:
    assert str(Fault("a.csv", 3, "flows", "'x' is not a number")) == "a.csv:3: flows: 'x' is not a number"
    assert str(Fault("a.csv", None, None, "is empty")) == "a.csv: is empty"


def test_control_characters_of_input_are_not_printed() -> None:
    """Escape codes could change the terminal, and a line end could look like another fault."""
    shown = InputError.of("a.csv", "id '\x1b[2J\nb.csv:1: forged' is unknown", hint="check the ids").render()
    assert shown.splitlines() == ["a.csv: id '\ufffd[2J\ufffdb.csv:1: forged' is unknown", "hint: check the ids"]


def test_of_many_faults_twenty_are_shown_and_the_others_counted() -> None:
    lines = (
        InputError([Fault("a.csv", line, None, "is wrong", "mend it") for line in range(1, 31)]).render().splitlines()
    )
    assert len(lines) == 22
    assert lines[-2:] == ["... and 10 more", "hint: mend it"]
