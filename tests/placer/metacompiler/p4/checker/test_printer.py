"""What is printed from a tree is parsed to the same tree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.metacompiler.p4.checker import check, parsed, printed
from placer.metacompiler.p4.checker.faults import SourcePosition
from placer.metacompiler.p4.checker.syntax import tree
from placer.metacompiler.p4.checker.syntax.expressions import PRECEDENCE
from tests.placer.metacompiler.p4.checker.programs import NAMES, program

AT = SourcePosition(1, 1)


@pytest.mark.parametrize("name", NAMES)
def test_a_printed_program_is_the_same_program(name: str) -> None:
    first = parsed(program(name))
    assert parsed(printed(first)) == first
    assert printed(parsed(printed(first))) == printed(first)
    assert check(printed(first), f"{name}.p4") == []


def test_positions_and_spellings_do_not_make_trees_differ() -> None:
    assert parsed("const bit<8> A = 16;") == parsed("\n  const bit<8>\n A = 0x10 ;")
    assert parsed("const bit<8> A = 16;") != parsed("const bit<8> A = 8w16;")


names = st.sampled_from(["a", "b", "hdr", "state", "type"])
numbers = st.builds(
    lambda value, width: tree.NumberLiteral(AT, value, width), st.integers(0, 255), st.none() | st.just(8)
)
types = st.sampled_from([tree.NamedType(AT, "bool"), tree.SizedType(AT, "bit", tree.NumberLiteral(AT, 8))])
leaves = st.one_of(
    numbers,
    st.builds(lambda value: tree.TruthLiteral(AT, value), st.booleans()),
    st.builds(lambda name: tree.NameUse(AT, name), names),
)


def _grown(of: st.SearchStrategy[tree.Expression]) -> st.SearchStrategy[tree.Expression]:
    argument = st.builds(lambda name, value: tree.CallArgument(AT, name, value), st.none() | names, of)
    base = st.one_of(
        st.builds(lambda name: tree.NameUse(AT, name), names),
        st.builds(lambda inner, name: tree.MemberUse(AT, inner, name), of, names),
    )
    return st.one_of(
        st.builds(
            lambda sign, left, right: tree.BinaryUse(AT, sign, left, right), st.sampled_from([*PRECEDENCE]), of, of
        ),
        st.builds(lambda sign, inner: tree.UnaryUse(AT, sign, inner), st.sampled_from("-~!"), of),
        st.builds(lambda kind, inner: tree.CastUse(AT, kind, inner), types, of),
        st.builds(lambda a, b, c: tree.ConditionalUse(AT, a, b, c), of, of, of),
        st.builds(lambda inner, name: tree.MemberUse(AT, inner, name), of, names),
        st.builds(lambda inner, high, low: tree.SliceUse(AT, inner, high, low), of, of, of),
        st.builds(lambda inner, index: tree.IndexUse(AT, inner, index), of, of),
        st.builds(lambda items: tree.ListUse(AT, tuple(items)), st.lists(of, max_size=3)),
        st.builds(
            lambda function, kinds, arguments: tree.CallUse(AT, function, tuple(kinds), tuple(arguments)),
            base,
            st.lists(types, max_size=2),
            st.lists(argument, max_size=2),
        ),
    )


@settings(max_examples=120, deadline=None)
@given(st.recursive(leaves, _grown, max_leaves=12))
def test_every_printed_expression_is_the_same_expression(expression: tree.Expression) -> None:
    """Parentheses stand where operators need them, whatever stands in whatever."""
    declared = tree.ConstantDeclaration(AT, tree.NamedType(AT, "bool"), "A", expression)
    whole = tree.P4Program(AT, (declared,))
    assert parsed(printed(whole)) == whole
