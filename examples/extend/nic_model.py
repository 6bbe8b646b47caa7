"""A constraint in one file: an instance runs only on NICs of certain models.

Copy it into `placer/model/constraints/`; then a trace may have the column `nic_model`, with
cells such as `bluefield-2|bluefield-3`.
"""

from collections.abc import Iterator

from placer.model.constraints import KindConstraint, register
from placer.model.nic_kind import NicKind
from placer.model.plan import Plan


@register
class NicModel(KindConstraint):
    """Names of NIC models, separated by `|`. An instance without any may be on every model."""

    name = "nic_model"
    text = "only on NICs of these models"

    @classmethod
    def allows(cls, value: str, kind: NicKind) -> bool:
        return not value or kind.model in value.split("|")

    @classmethod
    def faults(cls, plan: Plan) -> Iterator[str]:
        for placement in plan.placed:
            models = [name for name in placement.arrival.constraints.of(cls.name).split("|") if name]
            decided = placement.arrival.nic is None  # what already runs was nobody's decision
            if decided and models and placement.kind is not None and placement.kind.model not in models:
                yield f"{placement.arrival.id} is to be on {' or '.join(models)}, and is on a {placement.kind.model}"
