"""`placer fit`: what it prints and writes, what is read again, and what it refuses."""

import gzip
import json
from pathlib import Path

import pytest

from predictor.fitting.model_file import models_of, models_text
from tests.placer.commands.conftest import Placer, refuse, rows
from tests.placer.commands.test_loading import CHARTS, loaded_by
from tests.predictor.fitting.code.p4_interpreter import parsed
from tests.predictor.fitting.made_up_models import FOUR_SEGMENTS, made_up


@pytest.fixture
def line(tmp_path: Path) -> Path:
    """A straight line of twenty points: kpps = 5 + 2*load."""
    path = tmp_path / "line.csv"
    path.write_text("load,kpps\n" + "".join(f"{x},{5 + 2 * x}\n" for x in range(1, 21)), encoding="utf-8")
    return path


@pytest.fixture
def sizes(tmp_path: Path) -> Path:
    """A straight line for each of two packet sizes."""
    path = tmp_path / "sizes.csv"
    written = [f"{x},{size},{size + 2 * x}" for x in range(1, 21) for size in (1500, 64)]
    path.write_text("\n".join(["load,packet_size,kpps", *written]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.json"
    path.write_text(models_text([FOUR_SEGMENTS]), encoding="utf-8")
    return path


@pytest.fixture
def points(tmp_path: Path) -> Path:
    """Four points for the model, two of them outside of what was measured."""
    path = tmp_path / "points.csv"
    path.write_text("id,entries\na,4095\nb,4096\nc,0.5\nd,2000000\n", encoding="utf-8")
    return path


def test_the_model_is_printed_as_json(placer: Placer, line: Path) -> None:
    """A straight line is found as one, and nothing else is printed."""
    ended = placer("fit", line, "--x", "load", "--y", "kpps")
    assert (ended.status, ended.stderr) == (0, "")
    (found,) = models_of(ended.stdout, "stdout")
    assert (found.x, found.y, found.points, found.start, found.end) == ("load", "kpps", 20, 1, 20)
    assert found.predict([1.0, 10.0, 20.0]) == pytest.approx([7, 25, 45], rel=1e-3)
    assert json.loads(ended.stdout)["fit"] == 1


def test_columns_that_are_not_named_are_reported(placer: Placer, line: Path) -> None:
    """On stderr, unless --quiet."""
    named = json.loads(placer("fit", line, "--x", "load", "--y", "kpps").stdout)
    ended = placer("fit", line)
    assert {**json.loads(ended.stdout), "seconds": 0} == {**named, "seconds": 0}
    assert "fits kpps over load: no other columns hold numbers" in ended.stderr
    assert placer("fit", line, "--quiet").stderr == ""


@pytest.mark.parametrize(
    "written",
    [
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: gzip.compress(text.encode(), mtime=0),
    ],
)
def test_equal_files_give_equal_models(placer: Placer, line: Path, written: object) -> None:
    """With a byte order mark, CRLF, or gzipped."""
    plain = json.loads(placer("fit", line).stdout)
    line.write_bytes(written(line.read_text()))  # type: ignore[operator]
    assert {**json.loads(placer("fit", line).stdout), "seconds": 0} == {**plain, "seconds": 0}


def test_measurements_are_read_from_standard_input(placer: Placer, line: Path) -> None:
    plain = json.loads(placer("fit", line).stdout)
    assert {**json.loads(placer("fit", "-", stdin=line.read_bytes()).stdout), "seconds": 0} == {**plain, "seconds": 0}


def test_a_model_is_read_from_standard_input(placer: Placer, model: Path, points: Path) -> None:
    """As from `placer fit DATA.csv | placer fit - --at POINTS.csv`."""
    expected = placer("fit", model, "--at", points).stdout
    assert placer("fit", "-", "--at", points, stdin=model.read_bytes()).stdout == expected


def test_points_come_back_with_predictions(placer: Placer, model: Path, points: Path) -> None:
    """Other columns unchanged, what is outside of the measured range marked."""
    ended = placer("fit", model, "--at", points)
    assert ended.status == 0
    found = rows(ended.stdout)
    assert list(found[0]) == ["id", "entries", "predicted", "extrapolated"]
    assert [row["id"] for row in found] == ["a", "b", "c", "d"]
    exact = FOUR_SEGMENTS.predict([4095.0, 4096.0, 0.5, 2e6])
    assert [float(row["predicted"]) for row in found] == pytest.approx(exact, rel=1e-14)
    assert [row["extrapolated"] for row in found] == ["false", "false", "true", "true"]
    assert "2 of 4 rows are outside what was measured: they are marked `extrapolated`" in ended.stderr


def test_predictions_of_an_earlier_call_are_replaced(placer: Placer, model: Path, points: Path, tmp_path: Path) -> None:
    once = placer("fit", model, "--at", points).stdout
    again = tmp_path / "again.csv"
    again.write_text(once)
    assert placer("fit", model, "--at", again).stdout == once


def test_where_the_formula_has_no_value_nothing_is_predicted(placer: Placer, tmp_path: Path) -> None:
    """The logarithm of 0."""
    file, asked = tmp_path / "m.json", tmp_path / "p.csv"
    file.write_text(models_text([made_up((1.0, 9.0), ("log", (1.0, 2.0)))]))
    asked.write_text("entries\n0\n1\n")
    ended = placer("fit", file, "--at", asked)
    assert ended.stdout == "entries,predicted,extrapolated\n0,,true\n1,1,false\n"
    assert "1 of 2 rows have no prediction: the formula has no finite value there" in ended.stderr


def test_a_fit_is_written_and_used_again(placer: Placer, line: Path, tmp_path: Path) -> None:
    """With the very same predictions, whatever the file is called."""
    for name in ("model.json", "model"):
        out = tmp_path / "new" / name
        fitted = placer("fit", line, "--out", out)
        assert out.read_text() == fitted.stdout and f"wrote {out}" in fitted.stderr
        assert placer("fit", out).stdout == fitted.stdout
        direct = placer("fit", line, "--at", line)
        assert placer("fit", out, "--at", line).stdout == direct.stdout
        assert [path.name for path in out.parent.iterdir() if path.name.startswith(".")] == []


def test_there_is_a_fit_per_setting(placer: Placer, sizes: Path, tmp_path: Path) -> None:
    """By rising values; points name the settings, too."""
    out, asked = tmp_path / "m.json", tmp_path / "p.csv"
    ended = placer("fit", sizes, "--x", "load", "--x", "packet_size", "--y", "kpps", "--out", out)
    document = json.loads(ended.stdout)
    assert (document["fit"], document["x"], document["y"], document["settings"]) == (1, "load", "kpps", ["packet_size"])
    assert [one["setting"] for one in document["fits"]] == [{"packet_size": 64}, {"packet_size": 1500}]
    asked.write_text("packet_size,load\n1500,10\n64,10\n")
    assert [float(row["predicted"]) for row in rows(placer("fit", out, "--at", asked).stdout)] == pytest.approx(
        [1520, 84], rel=1e-3
    )


def test_one_setting_is_a_table_of_one(placer: Placer, tmp_path: Path) -> None:
    """So that programs find the same keys, however many settings there are."""
    path = tmp_path / "one.csv"
    path.write_text("x,size,y\n" + "".join(f"{x},64,{x}\n" for x in range(1, 13)))
    document = json.loads(placer("fit", path, "--x", "x", "--x", "size", "--y", "y").stdout)
    assert [one["setting"] for one in document["fits"]] == [{"size": 64}]


@pytest.mark.long
@pytest.mark.parametrize(
    ("language", "begins"),
    [("python", "import math\n"), ("c", "#include <math.h>\n"), ("latex", "% cycles/packet over"), ("p4", "// To inc")],
)
def test_a_model_is_printed_as_code(placer: Placer, model: Path, language: str, begins: str) -> None:
    ended = placer("fit", model, "--code", language)
    assert (ended.status, ended.stderr) == (0, "") and ended.stdout.startswith(begins)


def test_the_p4_of_measurements_keeps_its_error(placer: Placer, line: Path) -> None:
    (control,) = parsed(placer("fit", line, "--code", "p4").stdout)
    assert control.apply(10)[0] / 2.0**control.fraction_bits == pytest.approx(25, rel=0.011)


def test_errors_of_points_are_above_zero(line: Path) -> None:
    line.write_text("load,kpps,sd\n1,2,0.1\n2,3,0\n3,4,-1\n4,5,\n")
    printed = refuse("fit", line, "--x", "load", "--y", "kpps", "--error", "sd")
    assert [f"{line}:{number}: sd: " in printed for number in (2, 3, 4, 5)] == [False, True, True, True]


def test_what_a_fit_does_not_explain_is_said_everywhere(placer: Placer, tmp_path: Path) -> None:
    """On stderr, in the text, and in the JSON; nothing is predicted beyond the measurements."""
    path, asked = tmp_path / "steps.csv", tmp_path / "at.csv"
    rows_of = [f"{x},{100 + 40 * (x > 8)}.{repeat}" for x in (1, 2, 4, 8, 16, 32, 64) for repeat in range(4)]
    path.write_text("\n".join(["sessions,cycles", *rows_of]))
    asked.write_text("sessions\n64\n65\n")
    ended = placer("fit", path, "--shape", "continuous", "--format", "json")
    (note,) = json.loads(ended.stdout)["notes"]
    assert "times the noise that repeats show" in note and "measure more sessions between" in note
    assert f"{path}: cycles over sessions: {note}" in ended.stderr
    text = placer("fit", path, "--shape", "continuous", "--format", "text").stdout
    assert "note: the error," in text and "it can be continued" in text
    ended = placer("fit", path, "--shape", "continuous", "--at", asked)
    assert [row["predicted"] != "" for row in rows(ended.stdout)] == [True, False]
    assert "1 of 2 rows are not predicted: there, so far outside" in ended.stderr
    assert "notes" not in json.loads(placer("fit", path).stdout)


@pytest.mark.long
def test_fit_loads_no_symbols_and_no_charts(model: Path) -> None:
    """Unless code is requested."""
    heavy = {"sympy", "pandas", "sklearn", "ortools", *CHARTS}
    model_alone, code = loaded_by(["fit", model], ["fit", model, "--code", "c"])
    assert model_alone.isdisjoint(heavy) and "sympy" in code
