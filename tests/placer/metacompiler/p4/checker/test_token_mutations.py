"""Mutations of any token: what is accepted is a program, and why it is one is known."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from placer.metacompiler.p4.checker import check
from placer.metacompiler.p4.checker.syntax.lexer import P4Token, SourceText
from tests.placer.metacompiler.p4.checker.programs import NAMES, program

DRAWN = 25
STILL_PROGRAMS = {"const", "else", "exit", "in", "return", "!", "~", ";", "#include <core.p4>"}
"""Without such a token, another program stands there that no rule of the language refuses."""


def drawn_tokens(name: str) -> Iterator[P4Token]:
    """Some tokens of a program, the same at every run."""
    tokens = [token for token in SourceText(program(name)).tokens() if token.kind != "end"]
    yield from random.Random(name).sample(tokens, DRAWN)


@pytest.mark.parametrize("name", NAMES)
def test_a_program_without_a_token_is_refused(name: str) -> None:
    text = program(name)
    for token in drawn_tokens(name):
        without = text[: token.start] + text[token.end :]
        assert check(without, "a.p4") or token.text in STILL_PROGRAMS, token


@pytest.mark.parametrize("name", NAMES)
def test_a_program_with_a_token_twice_is_refused(name: str) -> None:
    text = program(name)
    for token in drawn_tokens(name):
        twice = f"{text[: token.end]} {token.text}{text[token.end :]}"
        assert check(twice, "a.p4") or token.text in STILL_PROGRAMS or token.kind == "pragma", token


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_occurs_more_than_once_cannot_be_misspelt(name: str) -> None:
    """Where a name is only declared, and nothing else names it, another one is as good."""
    text = program(name)
    for token in drawn_tokens(name):
        if token.kind == "name" and check(f"{text[: token.end]}x{text[token.end :]}", "a.p4") == []:
            declared = text[: token.start].rstrip()[-1:]
            assert declared not in ".({=", token


@pytest.mark.parametrize("name", NAMES)
def test_no_text_breaks_the_checker(name: str) -> None:
    """Tokens thrown together are refused, never a crash."""
    draw = random.Random(name)
    text = program(name)
    for _ in range(DRAWN):
        start, end = sorted(draw.sample(range(len(text)), 2))
        end = min(end, start + draw.randrange(200))
        other = draw.randrange(len(text))
        assert isinstance(check(text[:start] + text[other : other + 40] + text[end:], "a.p4"), list)
