"""Chains as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiles import NfStage
from profiles.chain_text import parse_chain, stages_text

names = st.text(
    st.characters(blacklist_characters=",:|= ", blacklist_categories=("Cc", "Cs", "Zs", "Zl", "Zp")), min_size=1
)
stages = st.lists(
    st.builds(NfStage.of, names, st.dictionaries(names, st.integers(-(10**6), 10**6), max_size=2)),
    min_size=1,
    max_size=4,
)


def test_stages_have_their_parameters() -> None:
    """Spaces around a stage do not matter."""
    parsed, cores = parse_chain("ACL:rules=1024:denied_pct=0.5, NAT")
    assert parsed == (NfStage.of("ACL", {"rules": 1024, "denied_pct": 0.5}), NfStage("NAT"))
    assert cores is None


def test_a_bar_begins_the_next_core() -> None:
    assert parse_chain("a,b|c|d,e")[1] == ((0, 1), (2,), (3, 4))


@given(stages)
def test_what_is_written_is_read_again(chain: list[NfStage]) -> None:
    """Names without separators, and whole numbers."""
    assert parse_chain(stages_text(chain)) == (tuple(chain), None)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", "a stage is empty"),
        ("a,,b", "a stage is empty"),
        ("a|", "a stage is empty"),
        ("a:rules", "'rules' is not of the form NAME=NUMBER"),
        ("a:=1", "'=1' is not of the form NAME=NUMBER"),
        ("a:rules=many", "'rules=many' is not of the form NAME=NUMBER"),
        ("a:rules=nan", "'rules=nan' is not of the form NAME=NUMBER"),
        ("a:rules=1:rules=2", "a has rules twice"),
        (",a:x", "a stage is empty; 'x' is not of the form NAME=NUMBER"),  # all faults at once
    ],
)
def test_what_is_no_chain_is_refused_with_every_fault(text: str, faults: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_chain(text)
    assert str(raised.value) == faults
