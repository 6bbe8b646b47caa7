"""chains.csv: rows are found again, replaced at their place, and refused where they are no chains."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles import ChainLoad, InputError, TrafficProfile
from profiles.chain_table import KEY_COLUMNS, key_of, read_chains, with_rows
from profiles.table import write_table

TRAFFIC = TrafficProfile(10, 64, 0)
HEADER = "order,cores,shares,flows,packet_size,mtbr,rate_kpps,repeat,throughput_kpps\n"


def row(names: str, kpps: float, repeat: int = 0) -> dict[str, object]:
    chain = ChainLoad.of(names.split(","), [[at] for at in range(names.count(",") + 1)], TRAFFIC)
    stages = {f"stage{at}_kpps": kpps for at in range(len(chain.stages))}
    return {**key_of(chain, repeat), "throughput_kpps": kpps, **stages}


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """Shorter chains have empty columns for further stages."""
    table = with_rows(None, [row("a,b", 5.5), row("c", 7.5, repeat=1)])
    write_table(table, tmp_path / "chains.csv")
    read = read_chains(tmp_path / "chains.csv")
    assert list(read.columns) == list(table.columns)
    assert read[KEY_COLUMNS].to_dict("records") == table[KEY_COLUMNS].to_dict("records")
    assert read.stage1_kpps.isna().tolist() == [False, True]
    write_table(with_rows(read, []), tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "chains.csv").read_bytes()


def test_a_row_of_the_same_run_is_replaced_at_its_place() -> None:
    """Another repeat, order or traffic is another row; columns that users added stay."""
    first = with_rows(None, [row("a,b", 1), row("c", 2)]).assign(note="mine")
    merged = with_rows(first, [row("c", 4), row("a,b", 3), row("a,b", 5, repeat=1), row("b,a", 6)])
    assert merged.throughput_kpps.tolist() == [3, 4, 5, 6]
    assert merged.columns[-1] == "note"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a,[[0]],[1],10,64,0,0,0,0", "throughput_kpps: 0 is no measurement"),
        ("a,[[1]],[1],10,64,0,0,0,1", "cores: '[[1]]' does not have each stage once"),
        ("a,[0],[1],10,64,0,0,0,1", "cores: '[0]' does not have each stage once"),
        ("a,x,[1],10,64,0,0,0,1", "cores: 'x' does not have each stage once"),
        ("a:b,[[0]],[1],10,64,0,0,0,1", "order: 'b' is not of the form NAME=NUMBER"),
        ("a,[[0]],1,10,64,0,0,0,1", "shares: '1' is not a list of shares"),
        ("a,[[0]],[1],10,64,0,0,,1", "repeat: is empty"),
    ],
)
def test_a_row_that_is_no_chain_is_refused(tmp_path: Path, line: str, message: str) -> None:
    """With its line and column."""
    (tmp_path / "chains.csv").write_text(HEADER + line + "\n", encoding="utf-8")
    with pytest.raises(InputError) as raised:
        read_chains(tmp_path / "chains.csv")
    assert f"chains.csv:2: {message}" in str(raised.value)
