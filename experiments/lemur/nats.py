"""Section 5.2: a Match in front of eleven NATs, one more than the stages of the switch hold."""

import pandas as pd
from matplotlib.figure import Figure

from experiments.lemur import BY_CYCLES, PAPER
from experiments.lemur.methodology.compared import RIVAL_STRATEGIES, TIME_LIMIT_S
from experiments.lemur.methodology.paper_rack import PACKET_SIZE, rack
from experiments.methodology.findings import Finding, findings_table
from experiments.registry import Result, Setting, experiment
from placer.rack.chain import Chain
from placer.rack.files.json_twins import chains_of
from placer.rack.plan import RackPlan
from placer.rack.stages.stage_oracles import check_stages
from placer.rack.stages.tables.packing import TABLE_LIBRARY, Memories, fewest_stages, table_program
from placer.rack.strategies import CHAIN_STRATEGIES

SWITCH_STAGES = 12
FEW_NATS, MANY_NATS = 10, 11
T_MIN_MBPS = 44_900  # as published: "about 44.9 Gbps", at delta 0.5


@experiment(PAPER, "lemur-nats", "Eleven NATs behind a Match, one more than the switch holds")
def run(setting: Setting) -> Result:
    """Stages by our packer and by two estimates, and the plans of all strategies with 12 stages."""
    plans = {name: _plan(name, setting) for name in ("optimal", "lemur", *RIVAL_STRATEGIES)}
    table = findings_table([*_stage_findings(), *_plan_findings(plans)])
    return Result(
        table,
        (BY_CYCLES, "Stages: our packer of tables by dependencies, key widths and entries; no vendor's compiler."),
        lambda figure: _draw(figure, table),
        (
            "Published stages are those of the switch's compiler (10 NATs, 12 stages), of an estimate field by field, "
            "and without the removal of dependencies between branches.",
            f"Strategies place {MANY_NATS} NATs on {SWITCH_STAGES} stages at a t_min of {T_MIN_MBPS / 1000:g} "
            f"Gbps; 'plan of' is 1 "
            "where one has a plan. Published: Lemur alone has one, with ten NATs on the switch and one on the server.",
            "With one server, NFs that leave the switch share its link of 40 Gbps.",
        ),
    )


def _stage_findings() -> list[Finding]:
    return [
        Finding(f"stages of {FEW_NATS} NATs", _fewest_stages(FEW_NATS), 12, "stages"),
        Finding(
            f"stages of {FEW_NATS} NATs, estimated by field", _fewest_stages(FEW_NATS, by_field=True), 14, "stages"
        ),
        Finding(f"stages of {FEW_NATS} NATs in series", _fewest_stages(FEW_NATS, in_series=True), 27, "stages"),
        Finding(f"stages of {MANY_NATS} NATs", _fewest_stages(MANY_NATS), unit="stages"),
    ]


def _plan_findings(plans: dict[str, RackPlan]) -> list[Finding]:
    found = [Finding(f"plan of {name}", float(bool(plan.chains)), float(name in ("lemur", "optimal")), "plans")
             for name, plan in plans.items() if name != "optimal"]  # fmt: skip
    for name in ("optimal", "lemur"):
        for chain in plans[name].chains:
            nats = sum(chain.chain.nfs[at].nf == "NAT" for at in chain.layout.on_switch)
            published = float(FEW_NATS) if name == "lemur" else float("nan")
            found.append(Finding(f"NATs on the switch, {name}", nats, published, "NATs"))
            found.append(Finding(f"rate of {name}", chain.rate_mbps / 1000, unit="Gbps"))
    return found


def _fewest_stages(nats: int, *, by_field: bool = False, in_series: bool = False) -> float:
    """The fewest stages of all NFs."""
    chain = nat_chain(nats)
    everything = frozenset((0, nf) for nf in range(len(chain.nfs)))
    program = table_program(everything, [chain], TABLE_LIBRARY, branches_share=not in_series)
    switch = rack(switch={"stages": SWITCH_STAGES}).switch
    found = fewest_stages(program, Memories(switch.tcam, switch.sram), by_field=by_field)
    return float("nan") if found is None else float(found)


def nat_chain(nats: int) -> Chain:
    """Match, so many NATs on equal branches, and IPv4Fwd."""
    names = [f"NAT_{at}" for at in range(1, nats + 1)]
    kinds = {"Match": "Match", **dict.fromkeys(names, "NAT"), "IPv4Fwd": "IPv4Fwd"}
    twin = {
        "name": "nats",
        "packet_size": PACKET_SIZE,
        "t_min_mbps": T_MIN_MBPS,
        "t_max_mbps": 100_000,
        "nfs": [{"id": name, "nf": nf} for name, nf in kinds.items()],
        "edges": [["Match", name, f"1/{nats}"] for name in names] + [[name, "IPv4Fwd"] for name in names],
    }
    return chains_of({"chains": [twin]}, "chains")[0]


def _plan(strategy: str, setting: Setting) -> RackPlan:
    setting.say(f"{strategy}: {MANY_NATS} NATs")
    chains = [nat_chain(MANY_NATS)]
    on = check_stages(rack(switch={"stages": SWITCH_STAGES}), chains, "tables")
    return CHAIN_STRATEGIES[strategy](chains, on, time_limit=TIME_LIMIT_S, notify=setting.say)


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    axes = figure.subplots()
    stages = table[table["unit"] == "stages"]
    for number, column in enumerate(("ours", "published")):
        at = [place + (number - 0.5) * 0.4 for place in range(len(stages))]
        axes.barh(at, stages[column].fillna(0), 0.38, label=column)
    axes.axvline(SWITCH_STAGES, color="gray", label="of the switch")
    axes.set_yticks(range(len(stages)), list(stages["quantity"]))
    axes.set_xlabel("stages")
    axes.legend(frameon=False)
