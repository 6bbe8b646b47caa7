"""Loads over the day: the file that `--loads` names, and the column of arrivals."""

import io

import pytest

from placer.inputs.arrivals import TraceOptions, read_arrivals
from placer.inputs.day_loads import read_day_loads
from placer.model.arrival import Arrival
from profiles import InputError, TrafficProfile

DEFAULT = TrafficProfile(16000, 1500, 600)
LOADS = {"office": (0.1, 1.0), "night": (1.0, 0.0)}


def _refused(text: str) -> list[str]:
    with pytest.raises(InputError) as refused:
        read_day_loads(io.StringIO(text))
    return str(refused.value).splitlines()


def test_shares_are_fractions_or_percent() -> None:
    """An empty row at the end is no load."""
    assert read_day_loads(io.StringIO("Name,1,2\noffice, 10 %,1\n night,1,0\n,,\n")) == LOADS


def test_every_fault_of_the_file_is_named() -> None:
    text = "name,1,2\na,0.5\n,1,1\nb,x,1.5\nb,1,1\nc,,-1\nd,0,0\n"
    assert _refused(text) == [
        "<text>:2: has 2 values, the header has 3", "<text>:3: name: is empty", "<text>:4: 1: 'x' is not a number",
        "<text>:4: 2: 1.5 is not from 0 to 1", "<text>:5: name: 'b' is already on line 4", "<text>:6: 1: is empty",
        "<text>:6: 2: -1 is not from 0 to 1", "<text>:7: offers nothing in any part of the day",
        "hint: 0.25 or 25 % is a quarter of the rate", "hint: names must be unique", "hint: 0 where nothing is offered",
        "hint: leave out the instance",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "<text>: is empty: not even a header"),
        ("name;1;2\n", "<text>:1: values are separated by ';', not by commas"),
        ("name\na\n", "<text>:1: the day has no parts"),
        ("name,0,1\na,1,1\n", "<text>:1: 0: is where '1' should be"),
        ("load,1\na,1\n", "<text>:1: load: is where 'name' should be"),
        ("name,1,\na,1,1\n", "<text>:1: column 3 has no name"),
        ("name," + ",".join(map(str, range(1, 1442))) + "\n", "<text>:1: the day has 1,441 parts, more than 1,440"),
        ("name,1\n", "<text>: has a header but no loads"),
        ("name,1\na,nan\n", "<text>:2: 1: 'nan' is not a number"),
    ],
)
def test_another_header_is_refused(text: str, fault: str) -> None:
    assert _refused(text)[0] == fault


def _read(text: str, options: TraceOptions) -> list[Arrival]:
    return read_arrivals(io.StringIO(text), DEFAULT, lambda workload: (), options)


def test_an_arrival_has_the_load_that_it_names() -> None:
    """An empty cell is the whole rate all day."""
    said: list[str] = []
    options = TraceOptions(loads=LOADS, say=said.append)
    read = _read("id,time,nf,rate_kpps,load\n1,0,NAT,10,office\n2,0,NAT,10,\n", options)
    assert [arrival.day for arrival in read] == [(0.1, 1.0), ()]
    assert [arrival.tenant.day for arrival in read] == [(0.1, 1.0), ()]
    assert said == []
    _read("id,time,nf,rate_kpps,load\n2,0,NAT,10,\n", options)
    assert said == ["<text>: no arrival has a load of --loads"]


def test_a_load_is_of_a_rate_and_in_the_file() -> None:
    with pytest.raises(InputError) as refused:
        _read("id,time,nf,rate_kpps,load,sla_drop\n1,0,NAT,10,ofice,\n2,0,NAT,,night,0.1\n", TraceOptions(loads=LOADS))
    assert str(refused.value).splitlines()[:3] == [
        "<text>:2: load: 'ofice' is not in the file of --loads",
        "<text>:3: load: is a share of a rate, and there is none",
        "hint: did you mean office?",
    ]


def test_a_load_is_refused_where_its_file_is_not_known() -> None:
    """It may be ignored like an unknown column, and is named then."""
    text, said = "id,time,nf,rate_kpps,load\n1,0,NAT,10,office\n", []
    with pytest.raises(
        InputError, match=r"<text>:1: load: the loads of the day are not known\nhint: --loads FILE.csv of run"
    ):
        _read(text, TraceOptions())
    (arrival,) = _read(text, TraceOptions(ignore_columns=True, say=said.append))
    assert (arrival.day, said) == ((), ["<text>: ignored columns: load"])
