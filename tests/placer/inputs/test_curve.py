"""Measured curves and points from CSV: what is read, and every reason to refuse a file."""

from pathlib import Path

import pytest

from placer.inputs.curve import read_curves, read_points
from profiles import InputError

LINE = "x,y\n1,2\n2,4\n3,6\n4,8\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a test writes."""
    return tmp_path / "d.csv"


def refused(path: Path, text: str, x: tuple[str, ...] = (), y: str | None = None) -> str:
    """What is wrong with a file, without the folder."""
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_curves(str(path), x, y)
    return str(error.value).replace(f"{path.parent}/", "")


def test_a_curve_has_the_rows_as_measured(file: Path) -> None:
    """Repeats included, in the order of the file; other columns are ignored."""
    file.write_text("note,load,kpps\na,2,20\nb,1,10\n,3,30.5\nnan,2,21\n")
    (curve,) = read_curves(str(file), ("load",), "kpps").curves
    assert (curve.x_name, curve.y_name, dict(curve.setting)) == ("load", "kpps", {})
    assert (curve.x.tolist(), curve.y.tolist()) == ([2, 1, 3, 2], [20, 10, 30.5, 21])


def test_the_only_two_columns_with_numbers_are_x_and_y(file: Path) -> None:
    """And a note says so; with one of them given, the other is the one that is left."""
    file.write_text("n,kind,y\n1,a,2\n2,b,4\n3,c,6\n")
    read = read_curves(str(file))
    assert (read.curves[0].x_name, read.curves[0].y_name) == ("n", "y")
    assert read.notes == (f"{file}: fits y over n: no other columns hold numbers",)
    assert read_curves(str(file), ("y",)).curves[0].y_name == "n"
    assert read_curves(str(file), (), "n").curves[0].x_name == "y"
    assert read_curves(str(file), ("n",), "y").notes == ()


def test_an_index_without_name_and_empty_rows_at_the_end_are_no_measurements(file: Path) -> None:
    """As pandas and spreadsheets write them; so that the two other columns are x and y."""
    file.write_text(",cpu,kbyte_per_s\n0,0.1,100\n1,0.2,200\n2,0.4,400\n,,\n,,\n")
    (curve,) = read_curves(str(file)).curves
    assert (curve.x_name, curve.y_name) == ("cpu", "kbyte_per_s")
    assert (curve.x.tolist(), curve.y.tolist()) == ([0.1, 0.2, 0.4], [100, 200, 400])


@pytest.mark.parametrize("header", [",,cpu,run,kpps", ",cpu,run,kpps,", ",cpu,,kpps,run", "run,cpu,run,kpps,"])
def test_columns_without_a_name_and_named_twice_are_ignored_where_others_are_used(file: Path, header: str) -> None:
    at = {"cpu": "{0}", "kpps": "{1}"}
    row = ",".join(at.get(name, "7") for name in header.split(","))
    file.write_text("\n".join([header, *(row.format(cpu, 10 * cpu) for cpu in (1, 2, 3))]))
    (curve,) = read_curves(str(file), ("cpu",), "kpps").curves
    assert (curve.x.tolist(), curve.y.tolist()) == ([1, 2, 3], [10, 20, 30])
    assert read_points(str(file), "cpu", [{}]).x.tolist() == [1, 2, 3]


def test_a_curve_in_utf_16_is_read(file: Path) -> None:
    """As a spreadsheet saves it."""
    file.write_text("load,kpps\n1,5\n2,7\n3,9\n", encoding="utf-16")
    assert read_curves(str(file)).curves[0].y.tolist() == [5, 7, 9]


def test_a_curve_per_setting(file: Path) -> None:
    """By rising values, each with its rows."""
    rows = [f"{size},{x},{size + x},{mode}" for x in (1, 2, 3) for size in (1500, 64) for mode in (0, 1)]
    file.write_text("\n".join(["size,x,y,mode", *rows]) + "\n")
    read = read_curves(str(file), ("x", "size", "mode"), "y")
    assert read.settings == ("size", "mode")
    assert [dict(curve.setting) for curve in read.curves] == [
        {"size": size, "mode": mode} for size in (64, 1500) for mode in (0, 1)
    ]
    assert read.curves[2].y.tolist() == [1501, 1502, 1503]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "d.csv: is empty: not even a header\nhint: the first line names the columns"),
        ("x,y\n", "d.csv: has a header but no rows"),
        ("x;y\n1;2\n", "d.csv:1: values are separated by ';', not by commas"),
        ("x\ty\n1\t2\n", "d.csv:1: values are separated by '\\t', not by commas"),
        ("x,y,x\n1,2,3\n", "d.csv:1: x: column named twice"),
        ("x,y,\n1,2,3\n", "d.csv:1: column 3 has no name"),
        (",x,,y\n0,1,2,3\n", "d.csv:1: column 3 has no name"),
        (",x,y\n0,1,2\n1,,\n", "d.csv:3: x: is empty"),
        ("x,y\n1,2\n,\n3,6\n", "d.csv:3: x: is empty"),
        ("x,y\n,\n", "d.csv: has a header but no rows"),
        ('x,y\n1,2\n2,"4,500"\n3,6\n', "d.csv:3: y: '4,500' is not a number\nhint: a comma has two meanings here"),
        ("x,y\n1,2\n2,four\n3,6\n", "d.csv:3: y: 'four' is not a number"),
        ("x,y\n1,2\n2,nan\n3,6\n", "d.csv:3: y: 'nan' is not a finite number"),
        ("x,y\n1,2\n-inf,4\n3,6\n", "d.csv:3: x: '-inf' is not a finite number"),
        ("x,y\n1,2\n2,1e999\n3,6\n", "d.csv:3: y: '1e999' is not a finite number"),
        ("x,y\n1,2\n2,1e16\n3,6\n", "d.csv:3: y: 1e16 is above 1e+15"),
        ("x,y\n1,2\n2,\n3,6\n", "d.csv:3: y: is empty"),
        ("x,y\n1,2\n2,4,5\n3,6\n", "d.csv:3: has 3 values, the header has 2\nhint: write decimals with a point: 0.1"),
        ("x,y\n1,2\n2\n3,6\n", "d.csv:3: has 1 values, the header has 2"),
        ('x,y\n1,2\n2,"4,5"\n3,6\n', "d.csv:3: y: '4,5' is not a number\nhint: write decimals with a point: 0.1"),
        ("x,y\n5,2\n5,4\n5,6\n", "d.csv: x: does not vary: it is 5 in every row\nhint: --x names the column"),
        ("x,y\n1,2\n2,4\n2,5\n", "d.csv: x: has 2 different values; a fit needs at least 3"),
        ("x,y\nа,б\nв,г\n", "d.csv:2: x: 'а' is not a number"),
        ("x,y\n1_0,2\n2,4\n3,6\n", "d.csv:2: x: '1_0' is not a number"),
        ("a,b,c\n1,2,3\n2,3,4\n", "d.csv: --x and --y are needed\nhint: columns with numbers: a, b, c"),
        ("x\n1\n2\n3\n", "d.csv: --x and --y are needed\nhint: columns with numbers: x"),
        ('x,y\n1,"2\n', "d.csv:2: is not CSV: unexpected end of data"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_line_and_column(file: Path, text: str, message: str) -> None:
    assert message in refused(file, text)


@pytest.mark.parametrize(
    ("text", "x", "y", "message"),
    [
        (LINE, ("X",), "y", "d.csv:1: X: column is missing\nhint: --x names it; did you mean x?"),
        (LINE, ("x",), "kpps", "d.csv:1: kpps: column is missing\nhint: --y names it; one of x, y"),
        (LINE, ("x", "size"), "y", "d.csv:1: size: column is missing\nhint: --x names it; one of x, y"),
        (LINE, ("x",), "x", "--x: 'x' is named twice\nhint: x, y and each setting are different columns"),
        (LINE, ("x", "x"), "y", "--x: 'x' is named twice"),
        # the line at which a setting begins
        ("x,y,size\n1,2,64\n2,4,64\n3,6,64\n1,2,128\n2,3,128\n", ("x", "size"), "y",
            "d.csv:5: x: has 2 different values at size=128; a fit needs at least 3"),
        # as of a measured column that was taken for a setting
        ("x,y,z\n" + "".join(f"{x},{x},{x / 7}\n" for x in range(1001)), ("x", "z"), "y",
            "d.csv: holds 1,001 settings, more than 1,000"),
        ("x,y\n" + "".join(f"{x},1\n" for x in range(20_001)), (), None,
            "d.csv: x: has 20,001 different values, more than 20,000"),
        # as from a pipe, which is read only once
        ('{\n "fit": 1\n}\n', (), None, "d.csv:1: is JSON, not CSV\nhint: a model is read from a file"),
    ],
    ids=["x", "y", "setting", "x as y", "x twice", "few points", "many settings", "many x", "a model"],
)  # fmt: skip
def test_what_columns_cannot_be_is_named(
    file: Path, text: str, x: tuple[str, ...], y: str | None, message: str
) -> None:
    assert refused(file, text, x, y).startswith(message)


def test_columns_that_are_named_by_numbers_are_read_by_their_names(file: Path) -> None:
    """Packet sizes, for example: nothing is guessed there."""
    file.write_text("64,1500\n1,2\n2,3\n3,4\n")
    assert read_curves(str(file), ("64",), "1500").curves[0].y.tolist() == [2.0, 3.0, 4.0]


def test_every_fault_is_named_at_once(file: Path) -> None:
    """Across rows and columns, ragged rows included."""
    shown = refused(file, "x,y\na,2\n2,b\n3\n4,nan\n", ("x",), "y")
    places = [line.partition(":")[2].partition(": ")[0] for line in shown.splitlines() if line.startswith("d.csv")]
    assert sorted(places) == ["2", "3", "4", "5"]


def test_too_many_rows_are_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("profiles.files.csv_table.MOST_ROWS", 3)
    assert refused(file, LINE) == "d.csv: holds more than 3 rows"


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    """A folder, and a file that is not there."""
    with pytest.raises(InputError, match="Is a directory"):
        read_curves(str(tmp_path))
    with pytest.raises(InputError, match=r"absent\.csv: No such file or directory"):
        read_curves(str(tmp_path / "absent.csv"))


def test_points_find_the_fit_of_their_setting(file: Path) -> None:
    file.write_text("id,size,x\na,1500,1\nb,64,2\nc,1500.0,3\n")
    points = read_points(str(file), "x", [{"size": 64.0}, {"size": 1500.0}])
    assert (points.x.tolist(), points.fits.tolist()) == ([1, 2, 3], [1, 0, 1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x\n1\n", "d.csv:1: size: column is missing\nhint: the fit names it; one of x"),
        ("size\n64\n", "d.csv:1: x: column is missing"),
        ("x,size\n1,64\n2,100\n", "d.csv:3: size: size=100 was not fitted\nhint: there are fits of size=64; size=1500"),
        ("x,size\n1,sixty\n", "d.csv:2: size: 'sixty' is not a number"),
        ("x,size\ninf,64\n", "d.csv:2: x: 'inf' is not a finite number"),
        ("x,size\n", "d.csv: has a header but no rows"),
    ],
)
def test_points_that_cannot_be_predicted_are_refused(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(InputError) as error:
        read_points(str(file), "x", [{"size": 64.0}, {"size": 1500.0}])
    assert message in str(error.value)
