"""Tenants, events and engines of toy NICs, for tests of a running fleet."""

import json

from placer.fleet.engine import Engine
from placer.fleet.event_lines import event_line
from placer.fleet.events import Arrive
from placer.fleet.protocol import Reader
from placer.fleet.queued_fleet import REJECT
from placer.model.fleet import Fleet
from placer.model.groups import Constraints
from placer.model.nic import Tenant
from placer.model.sla import Sla
from placer.policy.rules import FIRST_FIT
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import Workload

READER = Reader(TOY_TRAFFIC, lambda workload: (), lambda identity: None)
"""Reads events that change no tenant."""


def tenant(identity: object, nf: str = "d", drop: float = 0.5, *, priority: int = 0, **constraints: str) -> Tenant:
    """On a toy NIC, `d` takes 3 of 8 cores, `b` and `c` 2, `a` 1."""
    given = Constraints(tuple(sorted(constraints.items())))
    sla = Sla(max_drop=drop)
    return Tenant(str(identity), Workload(nf, TOY_TRAFFIC), sla, priority=priority, constraints=given)


def engine(*tenants: Tenant, count: int | None = 1, when_full: str = REJECT) -> Engine:
    """First fit on so many toy NICs, with these tenants."""
    one = Engine(Fleet(catalogue((count, 1.0)).kinds), [ToyOracle()], FIRST_FIT, when_full=when_full)
    assert {one.handle(Arrive(arriving)).status for arriving in tenants} <= {"placed"}
    return one


def read_arrival(**more: object) -> Tenant:
    """The tenant of a line that says so of an arriving `d`; its event reads the same once it is written."""
    event = READER.read(json.dumps({"event": "arrive", "id": "a", "nf": "d", "sla_drop": 0.5, **more}))
    assert isinstance(event, Arrive) and READER.read(event_line(event)) == event
    return event.tenant
