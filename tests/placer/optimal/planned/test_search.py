"""What the search counts, against what a plan is expected to violate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from placer.evaluate.expected_violations import likeliest_violations
from placer.model.plan import Placement, Plan
from placer.optimal.planned.search import NO_TENANT, chances_now, co_locations
from placer.optimal.planned.static import _Search
from placer.optimal.planned.strategy import Planned
from tests.placer.optimal.planned.instances import NAME, Instance, instances
from tests.placer.optimal.planned.test_exhaustive import EXAMPLES


@pytest.mark.long
@given(instances(most=10))
@EXAMPLES
def test_of_each_tenant_the_worst_on_the_way_counts(given: Instance) -> None:
    """In order of arrival: a NIC has only some parts of its last co-location before, and others never."""
    arrivals = [replace(one, time=float(at)) for at, one in enumerate(given.arrivals)]
    planner = Planned(given.catalogue, NAME).planner([one.tenant for one in arrivals], 1.0, 20.0)
    assert planner is not None
    search = _Search(planner, np.arange(planner.number), 1.0)
    placed = search.place(search.begin(search._state([])))
    names = [planner.tenants[tenant].id for tenant in search.tenants]
    nics = {name: int(nic) for name, nic in zip(names, placed.nic, strict=True) if nic != NO_TENANT}
    assert np.all(co_locations(search.graph, search.movers, placed.kind, placed.nic) != NO_TENANT)
    placements = [
        Placement(one, f"nic-{nics[one.id] + 1}", given.catalogue.kinds[placed.kind[nics[one.id]]])
        if one.id in nics
        else Placement(one, None, None)
        for one in arrivals
    ]
    worst = likeliest_violations(Plan("search", NAME, tuple(placements), 0.0), given.catalogue, NAME)
    chances = chances_now(search.graph, search.movers, placed.kind, placed.nic)
    counted = {name: chance for name, chance in zip(names, chances.tolist(), strict=True) if name in nics}
    assert counted == {name: pytest.approx(worst[name][0], abs=1e-9) for name in nics}
