"""Production files: every fault with its line and a hint; what is left out has a default."""

from pathlib import Path

import pytest

from placer.inputs.production import ProductionFile, read_production
from profiles import InputError

WHOLE = """\
testbed = "simulated"
seed = 3

[measure]
every = 2
share = 0.05

[[drift]]
nf = "ACL"
at = 0.5
factor = 0.85

[[liar]]
tenant = "a"
factor = 0.5
"""


def read(tmp_path: Path, text: str) -> ProductionFile:
    path = tmp_path / "p.toml"
    path.write_text(text, encoding="utf-8")
    return read_production(path)


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(InputError) as refused:
        read(tmp_path, text)
    return str(refused.value).replace(f"{tmp_path}/", "")


def test_an_empty_file_measures_without_drift_or_lies(tmp_path: Path) -> None:
    """One NIC in a hundred after every event, with the noise of hardware."""
    tables = read(tmp_path, "").tables
    assert (tables.testbed, tables.seed, tables.sla) == (None, 0, "promised")
    assert (tables.measure.every, tables.measure.share, tables.measure.noise_pct) == (1, 0.01, 1.0)
    assert tables.measure.lost_pct == tables.measure.outliers_pct == tables.measure.unsaturated_pct == 0
    assert (tables.drift, tables.liar) == ([], [])


def test_a_moment_is_the_number_of_an_event_or_a_fraction_of_all(tmp_path: Path) -> None:
    """Half of 100 events have happened before the 51st."""
    assert read(tmp_path, WHOLE).tables.drift[0].span(100) == (51, None)
    both = read(tmp_path, WHOLE.replace("at = 0.5", "at = 20\nuntil = 0.9")).tables.drift[0]
    assert both.span(100) == (20, 91)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("seed = 3", "sed = 3"), "p.toml:2: sed: unknown key\nhint: did you mean seed?"),
        (("seed = 3", "seed = -1"), "p.toml:2: seed: -1 is below 0"),
        (("seed = 3", 'sla = "kept"'), "p.toml:2: sla: 'kept' is not one of 'promised' or 'relative'"),
        (("every = 2", "every = 0"), "p.toml:5: measure.every: 0 is below 1"),
        (("every = 2", "often = 2"), "p.toml:5: measure.often: unknown key\nhint: "),
        (("share = 0.05", "share = 5"), "p.toml:6: measure.share: 5 is above 1"),
        (("share = 0.05", "lost_pct = 101"), "p.toml:6: measure.lost_pct: 101 is above 100"),
        (('nf = "ACL"', ""), "p.toml:8: drift.1.nf: is missing"),
        (("at = 0.5", ""), "p.toml:8: drift.1.at: is missing"),
        (("at = 0.5", "at = 1.5"), "p.toml:10: drift.1.at: 1.5 is neither the number of an event nor a fraction"),
        (("at = 0.5", 'at = "noon"'), "p.toml:10: drift.1.at: 'noon' is neither the number of an event nor"),
        (("factor = 0.85", "factor = 0"), "p.toml:11: drift.1.factor: 0 is below 0.01"),
        (("factor = 0.85", "factor = inf"), "p.toml:11: drift.1.factor: inf is not a finite number"),
        (('tenant = "a"', ""), "p.toml:13: liar.1: needs one of tenant and share\nhint: as in tenant"),
        (('tenant = "a"', 'tenant = "a"\nshare = 0.1'), "p.toml:13: liar.1: needs one of tenant and share"),
        (("[measure]", "[measure"), "p.toml:4: is not TOML"),
    ],
)
def test_a_fault_is_named_with_its_line(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    """The file, the line, the key, what is wrong, and what to do."""
    assert change[0] in WHOLE and refusal(tmp_path, WHOLE.replace(*change, 1)).startswith(message)


def test_all_faults_are_listed_at_once(tmp_path: Path) -> None:
    """Each once, although a moment may be two kinds of number."""
    wrong = WHOLE.replace("at = 0.5", "at = -1").replace("seed = 3", "seed = 0.5")
    assert [line.split(": ")[1] for line in refusal(tmp_path, wrong).splitlines()[:-1]] == ["seed", "drift.1.at"]


def test_what_the_trace_lacks_is_refused(tmp_path: Path) -> None:
    """Unknown NFs and tenants, and changes that come too late, are named together."""
    file = read(tmp_path, WHOLE + '[[drift]]\nnf = "NAT"\nat = 11\nuntil = 5\nfactor = 2.0\n')
    with pytest.raises(InputError) as refused:
        file.refuse_unknown(["NAT", "ACLs"], ["b"], 10)
    assert str(refused.value).replace(f"{tmp_path}/", "").splitlines() == [
        "p.toml:9: drift.1.nf: no arrival has the NF 'ACL'",
        "p.toml:18: drift.2.at: 11 is after the last of 10 events",
        "p.toml:19: drift.2.until: event 5 is not after event 11",
        "p.toml:14: liar.1.tenant: no arrival is 'a'",
        "hint: did you mean ACLs?",
    ]
