"""Pool: an instance is on NICs of certain pools, as those of its site; one without, on NICs without."""

from collections.abc import Iterator

from placer.model.constraints import KindConstraint, register
from placer.model.groups import BETWEEN_POOLS
from placer.model.nic_kind import NicKind
from placer.model.plan import Plan


@register
class PoolConstraint(KindConstraint):
    """Names of pools, separated by `|`. A NIC without a pool takes only instances without."""

    name = "pool"
    text = "only on NICs of one of these pools"

    @classmethod
    def allows(cls, value: str, kind: NicKind) -> bool:
        return kind.pool in value.split(BETWEEN_POOLS) if value else not kind.pool

    @classmethod
    def faults(cls, plan: Plan) -> Iterator[str]:
        for placement in plan.placed:
            asked, kind = placement.arrival.constraints.of(cls.name), placement.kind
            given = kind.pool if kind else ""
            wrong = bool(given) if not asked else not any(given == name for name in asked.split("|"))
            if wrong and placement.arrival.nic is None:
                where = f"pool '{given}'" if given else "no pool"
                wanted = f"is to be in pool '{asked}'" if asked else "has no pool"
                yield f"{placement.arrival.id} {wanted}, and {placement.nic} is in {where}"
