"""Databases that are no state, or that of another fleet, are refused by name, and no password is ever shown."""

from typing import Any

import psycopg
import pytest

from placer.fleet.state.open_state import open_state
from placer.fleet.state.postgres import schema
from placer.fleet.state.postgres.connection import show
from placer.fleet.state.postgres.state import SharedState
from placer.testing.strategies import catalogue
from profiles import InputError
from tests.postgres import Cluster

KINDS = catalogue((3, 1.0)).kinds


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("postgresql://u:hush@127.0.0.1:1/x", r"postgresql://u@127\.0\.0\.1:1/x cannot be opened"),
        ("postgresql://u:hush@127.0.0.1:port/x", "cannot be opened: .*invalid integer value"),
        ("postgresql://u:hu@zzsh@h/x", "is no address of PostgreSQL"),
        ("postgresql://u:hush@h/x?unknown=hush", "is no address of PostgreSQL"),
        ("postgresql://u:hu%zzsh@h/x", "is no address of PostgreSQL"),
    ],
)
def test_an_address_that_cannot_be_opened_is_refused_without_its_password(address: str, message: str) -> None:
    """Also where libpq would quote a part of it."""
    with pytest.raises(InputError, match=message) as refused:
        open_state(address, KINDS)
    assert "hush" not in str(refused.value) and "zzsh" not in str(refused.value)


def test_an_address_is_shown_without_password_and_settings() -> None:
    """Both may hold secrets."""
    assert show("postgresql://u:p@db.example:5433/fleet?sslpassword=s") == "postgresql://u@db.example:5433/fleet"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE TABLE other (x INTEGER)", "holds other tables"),
        ("CREATE TABLE facts (x INTEGER)", "lacks the tables of a state"),
        ("UPDATE head SET layout = '0'", "is of layout 0, not 5"),
        ("DELETE FROM head", "is not the state of a fleet"),
        ("DROP TABLE leases", "lacks the tables of a state: leases"),
        ("UPDATE facts SET value = '7' WHERE name = 'format'", "is of format 7"),
        ("INSERT INTO tenants (id, nf, flows, packet_size, mtbr) VALUES ('a', 'd', 1, 1, 0)", "has not one SLA"),
    ],
)
def test_what_is_no_state_or_makes_no_sense_is_refused(postgres: Cluster, statement: str, message: str) -> None:
    """A database of something else, and a damaged state."""
    address = postgres.database()
    if not statement.startswith("CREATE"):
        open_state(address, KINDS).close()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(statement)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=message):
        open_state(address, KINDS)


def test_the_state_of_another_fleet_is_refused(postgres: Cluster) -> None:
    """Other models; other counts only while another agent is alive."""
    address = postgres.database()
    with SharedState(address, KINDS):
        with pytest.raises(InputError, match="state of another fleet"):
            open_state(address, catalogue((3, 1.0), (3, 1.0)).kinds)
        with pytest.raises(InputError, match="other counts of NICs"):
            open_state(address, catalogue((4, 1.0)).kinds)
    open_state(address, catalogue((4, 1.0)).kinds).close()


def test_a_lease_is_one_agents_until_its_time_is_over_and_a_former_holder_writes_nothing(postgres: Cluster) -> None:
    """As of an agent that was stopped and comes back."""
    address = postgres.database()
    with SharedState(address, KINDS) as one, SharedState(address, KINDS) as other:
        assert one.leads("task") and not other.leads("task")
        assert one.note("row", 1, "task")
        one._ask("UPDATE leases SET expires = now() - interval '1 second'")
        assert other.leads("task") and one.leases.find_lease("task") is not None
        assert not one.note("row", 2, "task")
        assert one.find_note("row") == other.find_note("row") == 1 and not one.leads("task")
        assert other.note("row", 3, "task") and one.find_note("row") == 3


def test_agents_share_the_nics_out_among_those_that_are_alive(postgres: Cluster) -> None:
    """One that ends leaves its NICs to the others."""
    address = postgres.database()
    with SharedState(address, KINDS) as one:
        with SharedState(address, KINDS) as other:
            for state in (one, other):
                state.beat()
            assert all(one.pool.owns(number) is not other.pool.owns(number) for number in range(1, 9))
        one.beat()
        assert one.pool.agents == 1


@pytest.mark.parametrize("step", ["make_state", "check_layout", "keep_kinds"])
def test_a_database_that_is_lost_while_a_state_is_opened_is_said_to_be(
    postgres: Cluster, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Not that its tables are wrong, or its user has too few rights."""
    address = postgres.database()
    work = getattr(schema, step)

    def cut(connection: psycopg.Connection[Any], *rest: Any) -> Any:
        with psycopg.connect(address, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", (connection.info.backend_pid,))
        return work(connection, *rest)

    monkeypatch.setattr(schema, step, cut)
    with pytest.raises(InputError, match="cannot be opened: the connection was lost"):
        open_state(address, KINDS)
