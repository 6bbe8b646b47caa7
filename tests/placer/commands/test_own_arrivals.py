"""Arrivals as people have them, at every command that reads some: options say what is skipped, and stderr what was."""

import csv
import json
from pathlib import Path

import pytest

from tests.placer.commands.conftest import Placer
from tests.placer.commands.test_serve import serving

PLAIN = "id,time,nf,sla_drop\nweb,0,NAT,0.1\nedge,12.5,NIDS,0.05\ncore,12.5,ACL,0.1\n"
OWN = """\
,ID,Owner,Time,NF,SLA_Drop,Departure
0,web,ops,2026-03-01T08:00:00Z,NAT,10 %,
1,gone,ops,2026-03-01T08:00:10Z,NAT,10 %,2026-03-01T09:00:10+01:00
2,edge,lab,2026-03-01T08:00:12.5Z,NIDS,5%,
3,core,lab,2026-03-01T08:00:12.5Z,ACL,10 %,
,,,,,,
"""
SKIP = ("--ignore-columns", "--skip-empty-stays")
FAST = ("--strategy", "greedy", "--testbed", "none")


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """Three arrivals."""
    path = tmp_path / "plain" / "own.csv"
    path.parent.mkdir()
    path.write_text(PLAIN, encoding="utf-8")
    return path


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The same, as a table with an index, owners, dates, percent, one that never stayed, and an empty row."""
    path = tmp_path / "own.csv"
    path.write_text(OWN, encoding="utf-16")
    return path


def said(path: Path) -> list[str]:
    """What stderr says of the table."""
    return [f"{path}: ignored columns: Owner", f"{path}: skipped arrivals that depart at the time of their arrival: 1"]


def placed(path: Path) -> list[list[str]]:
    """The rows of a plan file."""
    with path.open(encoding="utf-8") as file:
        return list(csv.reader(file))


def test_a_table_of_ones_own_is_placed_like_the_plain_one(
    placer: Placer, plain: Path, own: Path, tmp_path: Path
) -> None:
    """The plans are the same to the byte; what is skipped is said on stderr, and not with --quiet."""
    plans = [tmp_path / "1.csv", tmp_path / "2.csv"]
    assert placer("run", plain, *FAST, "--plan", plans[0]).stderr == ""
    assert placer("run", own, *FAST, *SKIP, "--plan", plans[1]).stderr.splitlines() == said(own)
    assert plans[0].read_bytes() == plans[1].read_bytes() and len(placed(plans[0])) == 4
    assert placer("run", own, *FAST, *SKIP, "--quiet").stderr == ""


def test_what_would_be_skipped_is_refused_with_the_option_that_skips_it(placer: Placer, own: Path) -> None:
    """First the header, then the rows; exit status 2."""
    ended = placer("run", own, *FAST)
    assert (ended.status, ended.stdout) == (2, "")
    assert ended.stderr.splitlines()[0] == f"{own}:1: Owner: unknown column"
    assert ended.stderr.endswith("; --ignore-columns ignores others\n")
    ended = placer("run", own, *FAST, "--ignore-columns")
    assert (ended.status, ended.stdout) == (2, "")
    assert ended.stderr.splitlines() == [
        said(own)[0],
        f"{own}:3: departure: 2026-03-01T09:00:10+01:00 is not after the arrival at 2026-03-01T08:00:10Z",
        "hint: --skip-empty-stays skips instances that depart at the time of their arrival",
    ]


def test_the_page_names_the_options(placer: Placer, own: Path, tmp_path: Path) -> None:
    """Its command line is one that is read again."""
    page = tmp_path / "page.html"
    assert placer("run", own, *FAST, *SKIP, "--report", page).status == 0
    assert "--testbed none --ignore-columns --skip-empty-stays --report FILE.html" in page.read_text(encoding="utf-8")


def test_an_explanation_is_the_same(placer: Placer, plain: Path, own: Path) -> None:
    """Of every arrival; stderr says what is skipped before anything else of the trace."""
    every = ("--every", "--risk", 0.3)
    ended = placer("explain", own, *every, *SKIP)
    assert ended.stdout == placer("explain", plain, *every).stdout != ""
    assert ended.stderr.splitlines()[:2] == said(own)


def test_a_certificate_is_compared_with_the_same_arrivals(placer: Placer, own: Path, tmp_path: Path) -> None:
    """`placer verify` skips what `placer run` skipped."""
    certificate = tmp_path / "c.json"
    options = ("--strategy", "optimal", "--certificate", certificate)
    assert placer("run", own, *options, *SKIP).status == 0
    ended = placer("verify", certificate, "--arrivals", own, *SKIP)
    assert (ended.status, ended.stderr.splitlines()) == (0, said(own))
    assert placer("verify", certificate, "--arrivals", own).status == 2


def test_a_study_says_it_once_of_each_file(placer: Placer, own: Path, tmp_path: Path) -> None:
    """Although it reads each once per fleet."""
    (tmp_path / "fleet.toml").write_text('[[nic]]\nmodel = "bluefield-2"\n', encoding="utf-8")
    (tmp_path / "other.toml").write_text('[[nic]]\nmodel = "bluefield-2"\ncount = 9\n', encoding="utf-8")
    study = tmp_path / "study.toml"
    study.write_text(
        'strategies = ["greedy"]\nfleets = ["fleet.toml", "other.toml"]\n[[trace]]\nfile = "own.csv"\n',
        encoding="utf-8",
    )
    ended = placer("compare", study, "--jobs", 1, "--out", tmp_path / "out", "--format", "json", *SKIP)
    assert ended.status == 0, ended.stderr
    assert [row["rejected"] for row in json.loads(ended.stdout)] == [0, 0]
    assert [line for line in ended.stderr.splitlines() if "own.csv: " in line] == said(own)


@pytest.mark.long
def test_a_sizing_says_it_once(placer: Placer, own: Path, tmp_path: Path) -> None:
    """Although it reads the trace for the options and for the curves."""
    options = ("--growth", 1, "--draws", 1, "--strategy", "greedy", "--jobs", 1, "--out", tmp_path / "out")
    ended = placer("size", own, *options, *SKIP)
    assert ended.status == 0, ended.stderr
    assert [line for line in ended.stderr.splitlines() if "own.csv: " in line] == said(own)


@pytest.mark.long
def test_production_is_played_with_them(placer: Placer, plain: Path, own: Path, tmp_path: Path) -> None:
    """The same fleets from both tables."""
    file = tmp_path / "production.toml"
    file.write_text('seed = 1\n[[drift]]\nnf = "NAT"\nat = 1\nfactor = 0.9\n', encoding="utf-8")
    options = ("--production", file, "--risk", 0.3, "--format", "json")
    runs = [placer("run", plain, *options), placer("run", own, *options, *SKIP)]
    tables = [{key: value for key, value in json.loads(one.stdout).items() if key != "fleets"} for one in runs]
    assert tables[0] == tables[1] and tables[0]["arrivals"] == 3
    assert runs[1].stderr.splitlines()[:2] == said(own)


def test_a_fleet_begins_with_them(placer: Placer, own: Path) -> None:
    """The one that never stayed is not placed."""
    stdin = "\n".join(json.dumps({"event": "where", "id": name}) for name in ("edge", "gone"))
    ended = placer("online", "--arrivals", own, "--risk", 0.3, *SKIP, stdin=stdin)
    assert [json.loads(line).get("nic") for line in ended.stdout.splitlines()] == ["nic-1", None]
    assert [line for line in ended.stderr.splitlines() if line.startswith(f"{own}: ")] == said(own)


@pytest.mark.long
def test_a_service_begins_with_them(placer: Placer, own: Path, tmp_path: Path) -> None:
    """`--arrivals` of a service reads what other commands read, UTF-16 included."""
    with serving(tmp_path / "s.db", "--arrivals", str(own), "--risk", "0.3", *SKIP) as (_, client):
        assert client.get("/v1/summary").json()["tenants"] == 3
    refused = placer("serve", "--state", tmp_path / "t.db", "--listen", "127.0.0.1:0", "--arrivals", own, "--risk", 0.3)
    assert (refused.status, "Owner: unknown column" in refused.stderr) == (2, True)
