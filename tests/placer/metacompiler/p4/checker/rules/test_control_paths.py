"""A table stands once on every path; tables declared exclusive never meet on one."""

from __future__ import annotations

import pytest

from tests.placer.metacompiler.p4.checker.skeleton import faults, table

ONE, OTHER = "one.apply();", "other.apply();"


@pytest.mark.parametrize(
    "body",
    [
        f"if (meta.flag) {{ {ONE} }} else {{ {ONE} }}",
        f"if (meta.flag) {{ {ONE} return; }} {ONE}",
        f"if (meta.flag) {{ {ONE} exit; }} else {{ nothing(); }} {ONE}",
        "if (one.apply().hit) { nothing(); }",
        f"if (meta.flag) {{ nothing(); }} else if (meta.branch == 1) {{ {ONE} }} else {{ {ONE} }}",
    ],
)
def test_a_table_once_on_every_path_is_accepted(body: str) -> None:
    assert faults(table("one") + f"apply {{ nothing(); {body} }}") == []


@pytest.mark.parametrize(
    "body",
    [
        f"{ONE} {ONE}",
        f"if (meta.flag) {{ {ONE} }} {ONE}",
        f"if (one.apply().hit) {{ {ONE} }}",
        f"if (meta.branch == 1) {{ {ONE} }} if (meta.branch == 2) {{ {ONE} }}",
        f"if (meta.flag) {{ if (meta.branch == 1) {{ return; }} {ONE} }} {ONE}",
        f"{{ {ONE} }} {ONE}",
        f"if (meta.flag) {{ nothing(); }} else {{ {ONE} }} {ONE}",
    ],
)
def test_a_table_that_a_path_revisits_is_refused(body: str) -> None:
    assert faults(table("one") + f"apply {{ nothing(); {body} }}") == [
        "table one is applied a second time on this path"
    ]


def exclusive(body: str, actions: str = "set_other") -> list[str]:
    """What is said of two tables that are declared exclusive."""
    tables = table("one", actions, '@mutually_exclusive("other")') + table("other", actions)
    return faults(tables + f"apply {{ nothing(); {body} }}")


@pytest.mark.parametrize(
    "body",
    [
        f"if (meta.flag) {{ {ONE} }} else {{ {OTHER} }}",
        f"if (meta.branch == 1) {{ {ONE} }} if (meta.branch == 2) {{ {OTHER} }}",
        f"if (meta.branch == 2) {{ {OTHER} }} if (meta.branch == 1) {{ {ONE} }}",
        f"if (meta.branch == 1) {{ {ONE} }} else if (meta.branch == 2) {{ {OTHER} }}",
        f"if (meta.flag && meta.branch == 1) {{ {ONE} }} if (meta.branch == 2) {{ {OTHER} }}",
        f"if (meta.branch == 1) {{ nothing(); }} else {{ {ONE} }} if (meta.branch == 1) {{ {OTHER} }}".replace(
            "nothing()", "set_other(1)"
        ),
    ],
)
def test_tables_that_no_packet_reaches_both_may_be_declared_exclusive(body: str) -> None:
    assert exclusive(body) == []


@pytest.mark.parametrize(
    "body",
    [
        f"{ONE} {OTHER}",
        f"if (meta.branch == 1) {{ {ONE} }} if (meta.branch == 1) {{ {OTHER} }}",
        f"if (meta.branch == 1) {{ {ONE} }} if (meta.other == 2) {{ {OTHER} }}",
        f"if (meta.branch == 1 || meta.flag) {{ {ONE} }} if (meta.branch == 2) {{ {OTHER} }}",
        f"if (meta.branch == 1) {{ {ONE} set_branch(2); }} if (meta.branch == 2) {{ {OTHER} }}",
        f"if (meta.branch == 1) {{ {ONE} meta.branch = 2; }} if (meta.branch == 2) {{ {OTHER} }}",
        f"if (meta.flag) {{ {ONE} {OTHER} }}",
    ],
)
def test_tables_that_one_packet_may_reach_both_are_not_exclusive(body: str) -> None:
    assert exclusive(body) == ["tables one and other are declared exclusive, but one packet may reach both"]


def test_an_action_of_the_first_table_that_changes_the_branch_ends_exclusion() -> None:
    body = f"if (meta.branch == 1) {{ {ONE} }} if (meta.branch == 2) {{ {OTHER} }}"
    assert exclusive(body, "set_branch") == [
        "tables one and other are declared exclusive, but one packet may reach both"
    ]
