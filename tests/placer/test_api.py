"""What Python and notebooks show, take and refuse."""

import inspect
import io
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import placer
from placer.api import in_python
from placer.run import RunRequest
from profiles import InputError
from profiles.shown import LONGEST_TEXT

FILE = Path(__file__).parents[2] / "traces" / "arrivals-500.csv"


@pytest.fixture(scope="module")
def trace() -> placer.Trace:
    """Sixty arrivals."""
    return placer.read_trace(io.StringIO("".join(FILE.read_text().splitlines(keepends=True)[:61])))


@pytest.fixture(scope="module")
def result(trace: placer.Trace) -> placer.PlacementResult:
    """An online strategy and the optimum, by one predictor."""
    return placer.place(trace, ["contention-aware", "optimal"], predictors="tomur", vary_budget=True)


@pytest.fixture
def frame() -> pd.DataFrame:
    """Ten arrivals."""
    return pd.read_csv(FILE)[:10]


class TestShown:
    """What a notebook shows."""

    @pytest.mark.long
    def test_no_object_that_a_result_leads_to_is_longer_than_a_page(self, result: placer.PlacementResult) -> None:
        """Objects of the project that public attributes and collections lead to, down to the models of each NF."""
        seen: dict[int, object] = {}
        _walk(result, seen)
        ours = [thing for thing in seen.values() if type(thing).__module__.split(".")[0] in PACKAGES]
        assert {"Comparison", "Evaluation", "Plan", "BoundedPlan", "Catalogue", "Models", "NfModel"} <= {
            type(thing).__name__ for thing in ours
        }
        assert {type(thing).__name__: len(repr(thing)) for thing in ours if len(repr(thing)) > LONGEST_TEXT} == {}

    def test_a_result_is_shown_as_the_command_prints_it(self, result: placer.PlacementResult) -> None:
        """Rows, and the plan in a sentence: there is one strategy to choose from, so it is no recommendation."""
        lines = repr(result).splitlines()
        assert lines[0].split() == [
            "strategy", "predictor", "NICs", "wastage", "SLA", "violations", "expected", "rejected", "decisions/s",
        ]  # fmt: skip
        assert any(line.startswith("contention-aware, tomur (no other strategy was compared): ") for line in lines)

    def test_many_rows_are_cut_by_whole_lines(self, result: placer.PlacementResult) -> None:
        """A result of fifty plans does not exceed a page either."""
        many = replace(result.comparison, evaluations=result.comparison.evaluations * 25)
        text = repr(placer.PlacementResult(many))
        assert len(text) <= LONGEST_TEXT and text.endswith("\n...")
        assert len(placer.PlacementResult(many)._repr_html_()) < 10_000

    def test_a_notebook_gets_a_table_and_the_sentence(self, result: placer.PlacementResult) -> None:
        """Headings are names of columns of `table()`."""
        html = result._repr_html_()
        assert "<th>sla_violations_pct</th>" in html and "<td>contention-aware</td>" in html
        assert f"<p>{result.recommendation.splitlines()[0]}</p>" in html
        assert "simulated card, not on hardware" in html

    def test_names_of_the_user_are_no_markup(self, result: placer.PlacementResult, trace: placer.Trace) -> None:
        """Neither a strategy's name nor an id."""
        first = result.comparison.evaluations[0]
        named = replace(first, plan=replace(first.plan, strategy="<b>mine</b>"))
        html = placer.PlacementResult(replace(result.comparison, evaluations=(named,), variations=()))._repr_html_()
        assert "<b>" not in html and html.count("&lt;b&gt;mine&lt;/b&gt;") == 2
        assert "<b>" not in placer.Trace([replace(trace[0], id="<b>")])._repr_html_()
        assert "<b>" not in named._repr_html_()

    def test_a_trace_is_shown_by_what_it_holds(self, trace: placer.Trace) -> None:
        """It is a list all the same, and a notebook shows the first arrivals."""
        assert trace == list(trace) and isinstance(trace, list)
        assert repr(trace).startswith("<Trace of 60 arrivals, 1.443 to ") and "FlowMonitor" in repr(trace)
        assert repr(placer.Trace()) == "<Trace of 0 arrivals: >" and trace._repr_html_().count("<tr>") == 5
        rated = placer.Trace([replace(trace[0], workload=replace(trace[0].workload, rate_kpps=321.0, cores=4))])
        assert "<td>321</td>\n      <td>4</td>" in rated._repr_html_()

    def test_the_recommendation_names_arguments(self) -> None:
        """Commands stay commands."""
        assert in_python("contention-aware, tomur (--budget 0.5), 3 NICs") == (
            "contention-aware, tomur (cards.budget_pct=0.5), 3 NICs"
        )
        assert in_python("a lower --budget reduces violations") == "a lower cards.budget_pct reduces violations"
        assert in_python("give `--testbed none`, or `placer train P --out M`") == (
            "give `cards.testbed='none'`, or `placer train P --out M`"
        )
        assert in_python("--time-limit: file a--models.csv is bad") == "time_limit: file a--models.csv is bad"


class TestTables:
    """DataFrames of a result."""

    def test_documented_columns_are_there(self, result: placer.PlacementResult) -> None:
        """Help names them."""
        for method in (placer.PlacementResult.table, placer.PlacementResult.placements):
            listed = [line for line in (inspect.getdoc(method) or "").splitlines() if line.startswith("- ")]
            named = {word for line in listed for word in line.split(":")[0].replace("- ", "").split(", ")}
            assert len(named) >= 7
            assert {name.strip("`") for name in named} <= set(getattr(result, method.__name__)().columns)

    def test_ids_stay_text(self, trace: placer.Trace) -> None:
        """Also those that look like numbers or missing values."""
        named = [replace(arrival, id=name) for arrival, name in zip(trace, ("007", "NA", "1e3"), strict=False)]
        assert list(placer.place(named, "greedy").placements()["id"]) == ["007", "NA", "1e3"]


class TestPlace:
    """What `place` takes."""

    @pytest.mark.parametrize(
        "of", [lambda table: str(table), lambda table: table, lambda table: table.open(), pd.read_csv], ids=type
    )
    def test_it_reads_what_read_trace_reads(self, of: Callable[[Path], Any], tmp_path: Path) -> None:
        """A path, a file and a frame give the plan of the arrivals that are read from them."""
        path = tmp_path / "a.csv"
        path.write_text("".join(FILE.read_text().splitlines(keepends=True)[:6]), encoding="utf-8")
        placements = placer.place(placer.read_trace(path), "greedy").placements()
        pd.testing.assert_frame_equal(placer.place(of(path), "greedy").placements(), placements)

    def test_one_name_is_a_list_of_one(self, trace: placer.Trace) -> None:
        """Of strategies and of predictors; a class is one, too."""

        class Mine(placer.OnlineStrategy):
            """A NIC for each."""

            name = "mine"

            def choose(self, fleet: placer.Fleet, tenant: placer.Tenant) -> placer.Nic | placer.NicKind | None:
                return self.cheapest_new(fleet, tenant)

        few = trace[:4]
        assert list(placer.place(few, "greedy").table()["strategy"]) == ["greedy"]
        assert list(placer.place(few, "contention-aware", predictors="tomur").table()["predictor"]) == ["tomur"]
        assert list(placer.place(iter(few), Mine).table()["nics"]) == [4]

    def test_a_trace_has_loads_over_the_day(self, tmp_path: Path) -> None:
        loads = tmp_path / "loads.csv"
        loads.write_text("name,1,2\nnight,0.1,1\n", encoding="utf-8")
        text = "id,time,nf,rate_kpps,load\na,0,NAT,100,night\n"
        (arrival,) = placer.read_trace(io.StringIO(text), loads=loads)
        assert arrival.day == (0.1, 1.0)
        with pytest.raises(placer.InputError, match="the loads of the day are not known"):
            placer.read_trace(io.StringIO(text))

    def test_headroom_raises_what_is_offered_and_what_must_be_carried(self) -> None:
        """By as much, as `placer size --growth-of load` does."""
        trace = placer.read_trace(io.StringIO("id,time,nf,rate_kpps,sla_min_kpps\na,0,NAT,800,700\nb,0,NAT,,700\n"))
        grown, saturated = placer.place(trace, "monopolization", headroom_pct=10).comparison.arrivals
        assert grown.workload.rate_kpps == pytest.approx(880)
        assert grown.sla.min_kpps == pytest.approx(770)
        assert saturated == trace[1]

    def test_a_certificate_of_rates_is_refused_whenever_it_is_asked_for(self) -> None:
        """It would take them for more than can be carried."""
        trace = placer.read_trace(io.StringIO("id,time,nf,rate_kpps\na,0,NAT,800\n"))
        with pytest.raises(InputError, match="certificate: instances of the trace have offered rates"):
            placer.place(trace, "monopolization").comparison.certificate()

    def test_every_field_of_a_request_is_an_argument(self) -> None:
        """So that help and tab completion list it."""
        asked = {field.name for field in fields(RunRequest)} - {"trace_options"}  # those of read_trace
        assert set(inspect.signature(placer.place).parameters) == asked

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (
                {"strategies": ["gredy", "contention-aware:x"]},
                "strategies: 'gredy' is not a strategy\nstrategies: 'contention-aware:x' is not a strategy\n"
                "hint: did you mean greedy?\nhint: one of contention-aware:look-ahead, contention-aware:best-fit, "
                "contention-aware:first-fit, contention-aware:worst-fit",
            ),
            ({"predictors": "tomr"}, "predictors: not in the models: tomr\nhint: these models have tomur, slomo"),
            ({"solver": "abacus"}, "solver: 'abacus' is not an integer solver\nhint: solvers are cp-sat and highs"),
            (
                {"cards": placer.Cards(testbed="simulatd")},
                "cards.testbed: 'simulatd' is not a testbed\nhint: did you mean simulated?",
            ),
            (
                {"cards": placer.Cards(testbed="none"), "measure": 3},
                "measure: there is no testbed of a bluefield-2 to measure on\n"
                "hint: name it with cards.testbed, or with `testbed` in the fleet file",
            ),
            ({"time_limit": -1}, "time_limit: -1 is below 0.1"),
            ({"measure": 0}, "measure: 0 is below 1"),
            ({"headroom_pct": -5}, "headroom_pct: -5 is below 0"),
            ({"arrivals": []}, "arrivals: there are none"),
            ({"arrivals": "nowhere.csv"}, "nowhere.csv: No such file or directory"),
        ],
    )
    def test_faults_name_arguments(self, trace: placer.Trace, given: dict[str, Any], message: str) -> None:
        """Not options of a command."""
        with pytest.raises(InputError) as refused:
            placer.place(**{"arrivals": trace[:2], "strategies": "greedy", **given})
        assert str(refused.value) == message

    def test_arrivals_that_no_file_could_hold_are_refused(self, trace: placer.Trace) -> None:
        """Out of order, twice, of an NF that these NICs do not know, or at a rate that is none: all are named."""
        none, low = (replace(trace[2].workload, rate_kpps=rate) for rate in (-1.0, 100.0))
        sla = replace(trace[2].sla, max_drop=None, min_kpps=200.0)
        rated = [replace(trace[2], workload=none), replace(trace[2], id="x", workload=low, sla=sla)]
        with pytest.raises(InputError) as refused:
            placer.place(rated, "greedy")
        assert [str(fault) for fault in refused.value.faults] == [
            "arrivals[0]: rate_kpps: -1 is not above 0",
            "arrivals[1]: sla_min_kpps: 200 is above the rate that is offered, 100 kpps",
        ]
        foreign = replace(trace[2], workload=replace(trace[2].workload, nf="Foo"))
        with pytest.raises(InputError) as refused:
            placer.place([trace[1], trace[0], foreign, trace[1]], "greedy")
        faults = [str(fault).split(" (")[0] for fault in refused.value.faults]
        assert faults == [
            "arrivals[1]: time: 1.443 is before 4.388 of the arrival above",
            "arrivals[2]: nf: 'Foo' is not profiled",
            "arrivals[3]: id: 'nf-002' is already there",
            "arrivals[3]: time: 4.388 is before 14.931 of the arrival above",
        ]

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"arrivals": 3}, "arrivals is an int: give what placer.read_trace returns, or what it reads"),
            ({"arrivals": [{}]}, r"arrivals\[0\] is a dict: placer.read_trace makes a placer.Arrival of each row"),
            ({"strategies": 3}, "strategies has an int: give names, or subclasses of placer.Strategy"),
            ({"strategies": [int]}, "strategies has the class int: give names, or subclasses"),
            ({"strategies": placer.OnlineStrategy}, "the class OnlineStrategy, which has no name: write name = "),
            ({"predictors": [None]}, 'predictors has None: give names, such as "tomur"'),
            ({"cards": "fleet.toml"}, 'cards is a str: give placer.Cards\\(fleet="fleet.toml"\\)'),
            ({"time_limit": "5"}, "time_limit is a str, not a number"),
        ],
    )
    def test_other_types_are_refused(self, trace: placer.Trace, given: dict[str, Any], message: str) -> None:
        """With what to give instead."""
        with pytest.raises(TypeError, match=message):
            placer.place(**{"arrivals": trace[:2], "strategies": "greedy", **given})


class TestCards:
    """Which NICs there are."""

    def test_paths_may_be_text(self) -> None:
        """As everywhere in a notebook."""
        assert placer.Cards(models="models", fleet="fleet.toml") == placer.Cards(Path("models"), Path("fleet.toml"))

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"budget_pct": -1}, "budget_pct: -1 is not above 0 and at most 100\nhint: as in 2, for 2 % of instances"),
            ({"risk": 2}, "risk: 2 is not between 0 and 1\nhint: 0.5 is the median prediction"),
            (
                {"risk": 0.1, "budget_pct": 1},
                "budget_pct: is given together with risk\n"
                "hint: the budget chooses the risk by itself: give one of the two",
            ),
        ],
    )
    def test_a_budget_that_means_nothing_is_refused(self, given: dict[str, float], message: str) -> None:
        """As the command refuses it."""
        with pytest.raises(InputError) as refused:
            placer.Cards(**given)
        assert str(refused.value) == message


class TestFrames:
    """DataFrames as traces."""

    def test_a_frame_is_read_as_its_file(self, frame: pd.DataFrame) -> None:
        """Whatever its index, and also where `id` or the index of a file became one."""
        arrivals = placer.read_trace(FILE)[:10]
        assert placer.read_trace(frame) == arrivals
        assert placer.read_trace(frame.set_index(frame["id"].str.upper())) == arrivals
        assert placer.read_trace(frame.set_index("id")) == arrivals
        assert placer.read_trace(pd.read_csv(io.StringIO(frame.to_csv()))) == arrivals

    def test_a_missing_value_is_an_empty_cell(self, frame: pd.DataFrame) -> None:
        """NaN, None, pd.NA and NaT."""
        without = frame.assign(flows=float("nan"), mtbr=None, packet_size=pd.NA, departure=pd.NaT)
        assert placer.read_trace(without) == placer.read_trace(frame[["id", "time", "nf", "sla_drop"]])

    def test_timestamps_are_seconds_since_the_first(self, frame: pd.DataFrame) -> None:
        """With a time zone and without; departures, too."""
        seconds = frame.assign(time=range(10), departure=[None, *range(11, 20)])
        for zone in (None, "UTC", "Asia/Tokyo"):
            begin = pd.Timestamp("2024-05-01 23:59:55", tz=zone)
            dated = seconds.assign(
                **{name: begin + pd.to_timedelta(seconds[name], unit="s") for name in ("time", "departure")}
            )
            assert placer.read_trace(dated) == placer.read_trace(dated.set_index("time")) == placer.read_trace(seconds)

    def test_what_is_not_needed_can_be_left_out(self, frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
        """Unknown columns, and stays of no length; a line on stderr says so."""
        more = frame.assign(colour="red", departure=[*frame["time"][:2], *[None] * 8])
        assert placer.read_trace(more, ignore_columns=True, skip_empty_stays=True) == placer.read_trace(frame)[2:]
        assert capsys.readouterr().err == (
            "DataFrame: ignored columns: colour\n"
            "DataFrame: skipped arrivals that depart at the time of their arrival: 2\n"
        )
        with pytest.raises(InputError, match=r"; read_trace\(\.\.\., ignore_columns=True\) ignores others"):
            placer.read_trace(more)

    def test_durations_are_seconds(self, frame: pd.DataFrame) -> None:
        """Also as an index."""
        whole = frame.assign(time=range(10))
        timed = frame.assign(time=pd.to_timedelta(whole["time"], unit="s"))
        assert placer.read_trace(timed) == placer.read_trace(timed.set_index("time")) == placer.read_trace(whole)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda frame: frame.assign(colour=1), "DataFrame: colour: unknown column"),
            (lambda frame: frame.drop(columns="nf"), "DataFrame: nf: column is missing"),
            (lambda frame: frame[:0], "DataFrame: has a header but no arrivals"),
            (lambda frame: pd.concat({"a": frame}, axis="columns"), "DataFrame: the names of its columns have several"),
            (lambda frame: frame[::-1], "DataFrame:8: time: 75.777 is before 78.283 of the row above"),
            (lambda frame: frame[::-1], "hint: sort the DataFrame by time"),
            (lambda frame: frame.assign(id="a"), "DataFrame:1: id: 'a' is already in row 0"),
            (lambda frame: frame[5:].assign(id="a"), "DataFrame:7: id: 'a' is already in row 5"),
            (lambda frame: frame.assign(id="a\nb", sla_drop=2), "DataFrame:9: sla_drop: 2 is not in [0, 1)"),
            (lambda frame: pd.concat([frame, frame]), "DataFrame:10: id: 'nf-001' is already in row 0"),
            (lambda frame: frame.set_index("id").assign(nf="Foo"), "DataFrame:nf-010: nf: 'Foo' is not profiled"),
            (lambda frame: frame.assign(nf=None), "DataFrame:0: nf: is empty"),
        ],
    )
    def test_faults_name_the_row_by_its_label(
        self, frame: pd.DataFrame, change: Callable[[pd.DataFrame], pd.DataFrame], message: str
    ) -> None:
        """The label is what stands to the left of a row; where labels are not unique, rows are counted from 0."""
        with pytest.raises(InputError) as refused:
            placer.read_trace(change(frame))
        assert message in str(refused.value)

    def test_other_sources_are_refused(self) -> None:
        """Also a file that was opened for bytes."""
        with pytest.raises(TypeError, match="from a path, an open text file or a pandas DataFrame, not a list"):
            placer.read_trace([])  # type: ignore[arg-type]
        with FILE.open("rb") as file, pytest.raises(TypeError, match="csv is open in binary mode: open it as text"):
            placer.read_trace(file)  # type: ignore[arg-type]


def test_all_public_names_are_there() -> None:
    """Those that tab completion lists, among them the errors that help names."""
    assert dir(placer) == sorted(placer.__all__)
    assert {"InputError", "TestbedError", "InvalidPlan"} <= set(placer.__all__)
    assert all(getattr(placer, name).__doc__ for name in placer.__all__)


PACKAGES = ("placer", "predictor", "profiler", "profiles")


def _walk(thing: object, seen: dict[int, object], depth: int = 0) -> None:
    """Collect what public attributes, and the first items of collections, lead to."""
    ours = type(thing).__module__.split(".")[0] in PACKAGES
    if id(thing) in seen or depth > 10 or isinstance(thing, type) or callable(thing):
        return
    if ours:
        seen[id(thing)] = thing
        names = [name for name in dir(type(thing)) if not name.startswith(("_", "model_"))]
        names += [field.name for field in fields(thing)] if is_dataclass(thing) else []
        for name in names:
            try:
                _walk(getattr(thing, name), seen, depth + 1)
            except AttributeError:
                continue
    elif isinstance(thing, dict):
        for item in list(thing.values())[:3]:
            _walk(item, seen, depth + 1)
    elif isinstance(thing, (tuple, list)):
        for item in thing[:3]:
            _walk(item, seen, depth + 1)
