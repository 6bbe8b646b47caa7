"""What `placer` refuses, each in a folder of small files: with status 2, nothing on stdout, and nothing written."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from placer.fleet.service.http.tokens import new_token
from predictor.fitting.model_file import models_text
from tests.placer.commands.conftest import refuse
from tests.placer.commands.test_sweep import SMALL_SWEEP
from tests.predictor.fitting.made_up_models import FOUR_SEGMENTS
from tests.profiler.foreign import FOREIGN, bytes_of
from traces.arrivals import Recipe, generate

REPO = Path(__file__).parents[3]
EXAMPLES = REPO / "examples"
MIXED = f"{EXAMPLES}/mixed.csv --fleet {EXAMPLES}/mixed-fleet.toml"
STUDY = "[[trace]]\ncount = 12\n"
DRIFT = '[measure]\nshare = 0.2\n[[drift]]\nnf = "FlowStats"\nat = 20\nfactor = 0.85\n'
FILES = {
    "trace.csv": "".join(generate(Recipe(count=30, seed=5))),
    "rated.csv": "id,time,nf,rate_kpps\n1,0,NAT,100\n",
    "cores.csv": "id,time,nf,sla_drop,cores\n1,0,NAT,0.1,4\n",
    "day.csv": "id,time,nf,rate_gbps,packet_size,load\n0,0,ACL,27,1500,night\n",
    "loads.csv": "name,1,2,3\nday,0.1,1,0.2\nnight,1,0,0.1\n",
    "drift.toml": DRIFT,
    "fleet.toml": f'[[nic]]\nmodel = "titan-xp"\ndevice = "{EXAMPLES}/gpu.json"\n',
    "small.toml": SMALL_SWEEP,
    "risky.toml": f'strategies = ["greedy"]\nrisks = [0.05, 0.5]\n{STUDY}',
    "line.csv": "load,kpps\n" + "".join(f"{x},{5 + 2 * x}\n" for x in range(1, 21)),
    "model.json": models_text([FOUR_SEGMENTS]),
    "plan.csv": "strategy,predictor,id,nic,nic_model\n"
    + "".join(f"{name},,nf-{at:02},nic-{at},bluefield-2\n" for name in ("greedy", "other") for at in range(1, 31)),
    "tokens.toml": new_token("x", ["ask"])[1],
    "empty.db": "",
    "foreign/notes": "",
}

PRODUCTION = "run trace.csv --production drift.toml --risk 0.3"
LATENCY = "profile --testbed simulated:server --latency --out p"
SERVER = "profile --testbed simulated:server --out p"
PLANNED = "run trace.csv --of planned --certificate c.json"
NO_COMMAND = "cannot be combined with --chain or --chains"
NO_LATENCY = "cannot be combined with --latency"
FOLDER_HINT = "is a file\nhint: name a folder; it is created when it does not exist"

ROWS: Sequence[tuple[str, str]] = [
    # run
    ("run trace.csv --strategy luck", "--strategy: 'luck' is not a strategy"),
    ("run trace.csv --strategy optmal", "did you mean optimal?"),
    ("run trace.csv --predictor oracle", "--predictor: not in the models: oracle"),
    ("run trace.csv --format xml", "--format: 'xml' is not understood"),
    ("run trace.csv --models nowhere", "nowhere: is not a models directory"),
    ("run trace.csv --testbed dice", "--testbed: 'dice' is not a testbed"),
    ("run trace.csv --fleet nowhere.toml", "nowhere.toml: No such file"),
    (f"run trace.csv --testbed 'exec:{FOREIGN}'", "the models were trained on a bluefield-2"),
    *((f"run trace.csv {option} trace.csv", f"{option}: trace.csv is also the file of ARRIVALS")
      for option in ("--plan", "--certificate", "--report")),
    ("run trace.csv --plan a --report a", "--report: a is also the file of --plan"),
    ("run trace.csv --strategy optimal --certificate c.json --plan p.csv --plots line.csv",
     f"--plots: line.csv {FOLDER_HINT}\n"),
    (f"run {MIXED} --certificate c.json", "--certificate: only throughput can be certified"),
    (f"run {MIXED} --measure 5", "--measure: measures throughput"),
    (f"{PLANNED} --strategy greedy", "planned is not among the strategies"),
    (f"{PLANNED} --predictor slomo", "needs a predictor that estimates"),
    ("run trace.csv --of planned", "--of: needs --certificate"),
    ("run trace.csv --of hope --certificate c.json", "--of: 'hope' is not understood"),
    *((f"{command} {option} {value}", f"{option}: {fault}") for command, option in (
        ("run trace.csv", "--budget"), ("explain trace.csv", "--budget"), ("online --state s.db", "--budget"),
        ("rebalance --state s.db", "--sla-budget"), ("size trace.csv --out out", "--budget"),
        ("compare risky.toml --out out", "--budget"),
      ) for value, fault in (
        ("0", "0 is not above 0 and at most 100\nhint: "), ("101", "101 is not above 0 and at most 100\nhint: "),
        ("nan", "nan is not above 0 and at most 100\nhint: "),
      )),
    *((f"{command} {option} 1 --risk 0.1", f"{option}: is given together with --risk\nhint: ") for command, option in (
        ("run trace.csv", "--budget"), ("explain trace.csv", "--budget"), ("online --state s.db", "--budget"),
        ("rebalance --state s.db", "--sla-budget"),
      )),
    # rates and loads
    ("run rated.csv --predictor slomo", "slomo knows no offered rates and no cores"),
    *((f"run cores.csv --certificate c.json --of {of}",
       "--certificate: instances of the trace have numbers of cores, which no certificate knows")
      for of in ("optimal", "planned")),
    *((f"run rated.csv --certificate c.json --of {of}",
       "--certificate: instances of the trace have offered rates: their plans are not certified")
      for of in ("optimal", "planned")),
    ("run day.csv", "day.csv:1: load: the loads of the day are not known"),
    ("explain rated.csv --predictor slomo", "--predictor: slomo knows no offered rates and no cores"),
    ("explain day.csv", "day.csv:1: load: the loads of the day are not known"),
    ("run day.csv --loads loads.csv --measure 5",
     "--measure: is not understood where the load changes over the day\nhint: --ignore-columns without --loads plans"),
    ("run day.csv --loads loads.csv --certificate c.json", "--certificate: instances of the trace have offered rates"),
    # production
    (f"{PRODUCTION} --plan p.csv", "--plan: has no effect with --production"),
    (f"{PRODUCTION} --measure 3", "--measure: has no effect with --production"),
    (f"{PRODUCTION} --time-limit 3", "--time-limit: has no effect with --production"),
    (f"{PRODUCTION} --strategy greedy", "--strategy: is not one strategy with feedback"),
    (f"{PRODUCTION} --strategy contention-aware:best", "--rule: 'best' is not a rule"),
    (f"{PRODUCTION} --predictor tomur --predictor slomo", "--predictor: is given more than once"),
    (f"{PRODUCTION} --predictor tumor", "--predictor: not in the models: tumor"),
    (f"{PRODUCTION} --testbed none", "drift.toml: testbed: no testbed measures every NIC of the fleet"),
    (f"{PRODUCTION} --format xml", "--format: 'xml' is not understood"),
    ("run rated.csv --production drift.toml", "offered rates and promised latencies are not simulated"),
    # a running fleet
    ("online --testbed host --state s.db", "--testbed: there are no recorded models of 'host'\nhint: "),
    ("online --state empty.db", "empty.db: is not the state of a fleet"),
    ("online --backup copy.db", "--backup: there is no state to copy"),
    ("online --risk 0.3 --plan plan.csv", "--plan: a plan has no NFs, traffic and SLAs\nhint: give the trace"),
    ("online --risk 0.3 --arrivals trace.csv --plan-strategy greedy",
     "--plan-strategy: there is no plan\nhint: name it"),
    ("online --risk 0.3 --arrivals trace.csv --plan plan.csv", "several strategies: greedy, other\nhint: name one"),
    ("online --risk 0.3 --arrivals rated.csv --predictor slomo", "--predictor: slomo knows no offered rates"),
    ("online --risk 0.3 --arrivals none.csv --plan plan.csv", "none.csv: No such file"),
    ("online --risk 0.3 --arrivals trace.csv --plan none.csv", "none.csv: No such file"),
    ("feedback --state none.db", "does not exist"),
    *((f"{command} {option}", f"{option}: needs {needed}\n") for command, needed in (
        ("serve --state s.db", "--arrivals"), ("online", "--arrivals"), ("verify certificate.json", "--arrivals"),
        ("profile --testbed simulated --out p", "--for"),
      ) for option in ("--ignore-columns", "--skip-empty-stays")),
    # serve
    ("serve --listen 127.0.0.1:0", "--state: is missing"),
    ("serve --state s.db --listen 8080", "--listen: '8080' is not HOST:PORT"),
    ("serve --state s.db --listen 0.0.0.0:8080", "there are no --tokens"),
    ("serve --state s.db --listen 127.0.0.1:0 --tls-key key.pem", "--tls-certificate: is missing"),
    ("serve --state s.db --listen 127.0.0.1:0 --kubernetes cluster", "--kubernetes: 'cluster' is no address"),
    ("serve --state s.db --listen 127.0.0.1:0 --kubernetes in-cluster", "no pod with a service account"),
    ("serve --state s.db --listen 127.0.0.1:0 --tokens none.toml", "none.toml"),
    ("serve --state s.db --listen 127.0.0.1:0 --host http://x.example", "--host: 'http://x.example' is not a host"),
    ("serve --state s.db --listen 127.0.0.1:0 --tokens tokens.toml --host x.example",
     "--host: is given together with --tokens"),
    ("serve --state typo/s.db --listen 127.0.0.1:0", "--state: there is no folder typo"),
    ("serve --new-token x --scopes root", "'root' is no scope"),
    ("serve --state s.db --listen 127.0.0.1:0 --keep-log 30w", "--keep-log: '30w' is no number of events or days"),
    ("serve --state s.db --backup copy.db", "--state: s.db does not exist"),
    ("serve --state postgresql://x/y --backup copy.db", "--backup: is for a state in a file"),
    ("serve --state postgresql://x/y --listen 127.0.0.1:0 --restore copy.db", "--restore: is for a state in a file"),
    # traces and studies
    ("generate --sla 0.2-0.1", "--sla: '0.2-0.1' is not a range"),
    ("generate --sla 0.0_5-0.2", "--sla: '0.0_5-0.2' is not a range"),
    ("generate --nfs ,", "--nfs: names no NF"),
    ("generate --traffic heavy", "--traffic: 'heavy' is not understood"),
    ("generate --loads 1:0.5", "--loads: '1:0.5' is not a range of shares above 0 and at most 10"),
    ("generate --loads 0:0.5", "--loads: '0:0.5' is not a range of shares"),
    ("generate --loads 0.5-1", "--loads: '0.5-1' is not a range of shares"),
    ("generate --day d.csv", "--day: needs --loads"),
    ("compare risky.toml --out out --budget 2", "risky.toml has risks"),
    ("size trace.csv --out out --next-year 0", "--next-year: 0 is not between 0.01 and 1000"),
    ("size trace.csv --out out --next-year 1e308", "--next-year: 1e+308 is not between 0.01 and 1000"),
    ("size trace.csv --out out --next-year nan", "--next-year: nan is not between 0.01 and 1000"),
    ("size trace.csv --out out --budget 1 --budgets 2,1",
     "--budgets: '2,1' is not a list of numbers above 0 and at most 1"),
    ("size trace.csv --out out --draws 0", "--draws: 0 is not between 1 and 100000"),
    ("size trace.csv --out out --draws 99999999999999999999", "--draws: 1e+20 is not between 1 and 100000"),
    ("size trace.csv --out out --growth 1,-2",
     "--growth: '1,-2' is not a list of numbers above 0 and at most 1000"),
    ("size trace.csv --out out --growth 1e308",
     "--growth: '1e308' is not a list of numbers above 0 and at most 1000"),
    ("size trace.csv --out out --sla nan", "--sla: 'nan' is not a list of numbers above 0 and at most 1000"),
    ("size trace.csv --out out --risk 0.1,0.2", "--risk: is chosen by the budget"),
    ("size trace.csv --out out --growth 1000 --draws 9999",
     "--draws: all draws of all points are 300,419,955 arrivals"),
    # diagnose
    ("diagnose NTA", "NF: nf: 'NTA' is not profiled"),
    ("diagnose NAT:mtbr=lots", "NF: mtbr: 'lots' is not a number"),
    ("diagnose NAT:speed=1", "'speed' is not understood"),
    ("diagnose NAT:rate_kpps=0", "NF: rate_kpps: 0 is refused"),
    ("diagnose NAT:cores=1.5", "NF: cores: 1.5 is refused"),
    ("diagnose NAT:rate_kpps=1,rate_gbps=1", "NF: has two rates"),
    ("diagnose NAT:rate_kpps=8000", "NF: rate_kpps: 8,000 kpps is more than 'NAT' carries: at most 3,565 kpps"),
    ("diagnose NAT:rate_gbps=101", "NF: rate_gbps: 101 Gb/s on the wire are more than a port carries: 100 Gb/s"),
    ("diagnose NAT:rate_gbps=20" + 3 * " --beside ACL:rate_gbps=30", "--beside: together their packets take more than"),
    ("diagnose NAT:rate_kpps=9 --predictor slomo", "--predictor: slomo knows no offered rates"),
    ("diagnose NAT --beside ACL:flows=9e9", "--beside: flows: "),
    ("diagnose NAT --along time", "--along: 'time' is not understood"),
    ("diagnose NAT" + 4 * " --beside ACL", "--beside: together they need 10 cores, a bluefield-2 has 8"),
    # profile
    (f"{SERVER} --chain ACL,Nat", "--chain: 'ACL,Nat': the testbed has no Nat\nhint: did you mean NAT?"),
    (f"{SERVER} --chain ACL:rules=x", "--chain: 'ACL:rules=x': 'rules=x' is not of the form NAME=NUMBER\nhint: as in"),
    (f"{SERVER} --chains pears", "--chains: 'pears' is not understood\nhint: it is one of pairs, triples"),
    (f"{SERVER} --chain ACL --share 1.5", "--share: 1.5 is not above 0 and at most 1"),
    (f"{SERVER} --chain ACL --nf ACL", "--nf: chooses the NFs of --chains, which is missing"),
    (f"{SERVER} --chain ACL --quota 9", f"--quota: {NO_COMMAND}"),
    (f"{SERVER} --chain ACL --method full", f"--method: {NO_COMMAND}"),
    (f"{SERVER} --chains pairs --budget 1", f"--budget: {NO_COMMAND}"),
    (f"{SERVER} --repeats 3", "--repeats: needs --chain, --chains or --latency"),
    (f"{SERVER} --cores-of-chain 3", "--cores-of-chain: needs --chain or --chains"),
    (f"{SERVER} --chain ACL --cores 2", f"--cores: {NO_COMMAND}"),
    (f"{SERVER} --cores 1,two", "--cores: '1,two' is no list of numbers of cores\nhint: such as 1,2,4"),
    (f"{SERVER} --cores 3", "--cores: simulated-server-16 gives no NF 3 cores\nhint: possible are 1, 2, 4"),
    (f"{LATENCY} --nf Nat", "--nf: the testbed has no Nat\nhint: did you mean NAT?"),
    (f"{LATENCY} --quota 9", f"--quota: {NO_LATENCY}"),
    (f"{LATENCY} --chain ACL", f"--chain: {NO_LATENCY}"),
    (f"{LATENCY} --share 0.5", f"--share: {NO_LATENCY}"),
    (f"{LATENCY} --method full", f"--method: {NO_LATENCY}"),
    (f"{LATENCY} --seed -1", "--seed: -1 is negative"),
    # fit and sweep
    ("fit line.csv --code pascal", "--code: 'pascal' is not a language\nhint: one of python, c, latex, p4"),
    ("fit line.csv --code C", "--code: 'C' is not a language\nhint: did you mean c?"),
    ("fit line.csv --shape wavy", "--shape: 'wavy' is not understood\nhint: it is one of free, continuous, steps"),
    ("fit line.csv --shape steps --select tum", "--select: tum is given together with --shape\nhint: give one of them"),
    ("fit line.csv --break 4 --select tum", "--select: tum is given together with --break\nhint: give one of them"),
    ("fit line.csv --break 4 --shape continuous",
     "--shape: continuous is given together with --break\nhint: between"),
    ("fit line.csv --break 30", "--break: leaves a segment without measurements: load is 1 to 20\nhint: give each"),
    ("fit line.csv --break 4 --break 4", "--break: leaves a segment without measurements: load is 1 to 20"),
    ("fit line.csv --break nan", "--break: leaves a segment without measurements: load is 1 to 20"),
    ("fit line.csv --error sd", "1: sd: column is missing\nhint: --error names it; one of load, kpps"),
    ("fit line.csv --error load", "--x and --y are needed\nhint: columns with numbers: kpps"),
    ("fit line.csv --select aic", "--select: 'aic' is not understood\nhint: it is one of bic, tum"),
    ("fit line.csv --at line.csv --code c", "--at: is given together with --code"),
    ("fit line.csv --at line.csv --format json",
     "--format: is given together with --at\nhint: --at prints CSV, --code"),
    ("fit line.csv --code c --format text", "--format: is given together with --code\nhint: --at prints CSV, --code"),
    ("fit line.csv --x 'load, kpps'",
     "1: load, kpps: column is missing\nhint: name one column each: --x load --x kpps\n"),
    ("fit line.csv --x Load", "1: Load: column is missing\nhint: --x names it; did you mean load?"),
    ("fit line.csv --y mpps", "1: mpps: column is missing\nhint: --y names it; did you mean kpps?"),
    ("fit line.csv --x load --y load", "--x: 'load' is named twice"),
    ("fit line.csv --out line.csv", "is also the file of DATA\nhint: name another file"),
    ("fit line.csv --plots line.csv", f"line.csv {FOLDER_HINT}"),
    ("fit absent.csv --plots line.csv", "line.csv is a file\nhint: name a folder"),
    ("train absent --out line.csv", "line.csv is a file\nhint: name a folder"),
    ("fit line.csv --out .", "cannot be written\nhint: name a file in a folder that you may write to"),
    ("fit line.csv --at absent.csv", "absent.csv: No such file or directory"),
    ("fit absent.json", "absent.json: No such file or directory\n"),
    ("fit foreign", "foreign: Is a directory\n"),
    ("fit - --at -", "--at: standard input is already the data"),
    *((f"fit model.json {option}", f"{option.split()[0]}: is for measurements; this is a fitted model") for option in (
        "--x entries", "--y cycles", "--select bic", "--shape free", "--break 4", "--error sd")),
    ("sweep small.toml --out line.csv", "--out: line.csv "),
    ("sweep small.toml --out foreign", "--out: foreign "),
    # admit
    (f"admit {EXAMPLES}/slos.jsonl", "hint: name a GPU: --device FILE, or --models DIR"),
    (f"admit {EXAMPLES}/slos.jsonl --models foreign", "foreign: is not a models directory"),
    *((f"admit {EXAMPLES}/slos.jsonl --device {EXAMPLES}/gpu.json {options}", fault) for options, fault in (
        ("--method predicted", "--models: is missing: --method predicted admits by models"),
        ("--method gruss", "--method: 'gruss' is not a method of admission\nhint: did you mean grus"),
        ("--format csv", "--format: 'csv' is not understood\nhint: it is one of table, json"),
        ("--models models", "--device: is given together with --models\nhint: name a GPU"),
        ("--certificate /proc/x", "--certificate: /proc/x cannot be written"),
        (f"--certificate {EXAMPLES}/slos.jsonl", "is also the file of SLOS"),
      )),
]  # fmt: skip

LATENCIES = "id,time,nf,sla_drop,rate_kpps,sla_latency_us\n"
GPU = f'device = "{EXAMPLES}/gpu.json"'
WITH_OWN: Sequence[tuple[str, str, str]] = [
    ("run own", LATENCIES + "a,0,ACL,,5,90\n", "own:2: sla_latency_us: the latency of 'ACL' cannot be promised"),
    ("run own --fleet fleet.toml", "id,time,nf,rate_kpps,sla_mean_latency_us\na,0,ACL,600,400\n",
     "own:2: sla_mean_latency_us: the mean latency of 'ACL' cannot be promised"),
    ("run own --fleet fleet.toml", LATENCIES + "a,0,ACL,0.1,,\n",
     "own:2: rate_kpps: is missing, and 'ACL' runs on GPUs only, which need it"),
    ("run own --fleet fleet.toml", LATENCIES + "a,0,ACL,,,90\n",
     "own:2: rate_kpps: is missing: latency depends on the rate that is offered"),
    ("run own --fleet fleet.toml", LATENCIES + "a,0,ALC,,5,90\n",
     "own:2: nf: 'ALC' is not profiled, and no GPU runs it (did you mean ACL?)"),
    *((f"run {EXAMPLES}/mixed.csv --fleet own", '[[nic]]\nmodel = "titan-xp"\n' + lines, fault) for lines, fault in (
        (f'{GPU}\nmodels = "m"\n', "own:3: device: is given together with models"),
        ('device = "nowhere.json"\n', "nowhere.json: No such file"),
        (f"{GPU}\ncores = 23\n", "cores: 23 are more than the 22 workers of gpu.json"),
        (f'{GPU}\ntestbed = "simulated"\n', "is a bluefield-2, which is no GPU"),
      )),
    ("run own", "id,time,nf,rate_kpps\n1,0,NAT,9000\n",
     "own:2: rate_kpps: 109.4 Gb/s on the wire are more than a port carries: 100 Gb/s"),
    ("run own", "id,time,nf,rate_kpps\n1,0,NAT,7000\n",
     "own:2: rate_kpps: 7,000 kpps is more than 'NAT' carries: at most 3,"),
    ("run own", "id,time,nf,rate_kpps,cores\n1,0,NAT,100,3\n",
     "own:2: cores: 'NAT' is not profiled on 3 cores, possible: 1, 2, 4"),
    ("run trace.csv --production own", DRIFT.replace("FlowStats", "FlowStat"),
     "own:4: drift.1.nf: no arrival has the NF 'FlowStat'\nhint: did you mean FlowStats?"),
    ("run trace.csv --production own --risk 0.3", f'[retrain]\nprofiles = ["{REPO}/traces/server-simulated"]\n',
     "traces/server-simulated is not a profile of another NIC model"),
    ("pack own", "two dimensions", "own: is not a .vbp file: it holds whole numbers only"),
    ("fit line.csv --at own --out out.json", "load\n1\nmany\n", "own:3: load: 'many' is not a number"),
    *(("fit own --out out.json", text, f"own:{fault}") for text, fault in (
        ("", " is empty: not even a header"),
        ("load;kpps\n1;2\n", "1: values are separated by ';', not by commas"),
        ("load,kpps\n1,2\n2,fast\n3,nan\n", "3: kpps: 'fast' is not a number\nown:4: kpps: 'nan' is not a finite"),
        ("load,kpps,load\n1,2,3\n", "1: load: column named twice"),
        ("load,kpps\n1,2\n1,3\n", " load: does not vary: it is 1 in every row"),
        ("load,kpps\n1,2\n2,3\n", " load: has 2 different values; a fit needs at least 3"),
        ("1,2\n2,3\n3,4\n4,5\n", "1: 1 is a number, not the name of a column\nhint: the first line names the columns"),
        ("load,kpps\n1,2\n2,3,4\n", "3: has 3 values, the header has 2"),
        ('{"fit": 1}', " x: is missing"),
        ("{", "1: column 2: is not JSON"),
      )),
    *(("sweep own --out s", SMALL_SWEEP.replace(*change), f"own:{fault}") for change, fault in (
        (('nf = "FlowStats"', 'nf = "FlowStat"'), "3: workload.nf: simulated-bluefield-2 has no FlowStat\nhint: did"),
        (('key = "flows"', 'key = "flow"'), "5: vary.1.key: FlowStats has no flow\nhint: did you mean flows?"),
        (("to = 500_000", "to = 500_001"), "7: vary.1.to: flows 500001 is outside [1, 500000]"),
        (("points = 12", "points = 1"), "8: vary.1.points: 1 is below 2"),
        (("repeats = 2", "metrics = ['cycles_per_packet']"), "11: measure.metrics: cycles_per_packet is not known"),
      )),
]  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "foreign").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("command", "message"), ROWS, ids=[command[:80] for command, _ in ROWS])
def test_a_command_is_refused(folder: Path, command: str, message: str) -> None:
    before = bytes_of(folder)
    assert message in refuse(*shlex.split(command))
    assert bytes_of(folder) == before


@pytest.mark.parametrize(("command", "text", "message"), WITH_OWN, ids=[f"{row[0]}, {row[2]}"[:80] for row in WITH_OWN])
def test_a_file_is_refused(folder: Path, command: str, text: str, message: str) -> None:
    """The file is called `own`."""
    (folder / "own").write_text(text, encoding="utf-8")
    test_a_command_is_refused(folder, command, message)
