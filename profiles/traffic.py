"""Traffic profiles: what an NF's packets look like."""

from collections.abc import Mapping
from dataclasses import dataclass

ATTRIBUTES = ("flows", "packet_size", "mtbr")
"""The traffic attributes, in the order of every file and feature vector (Tomur, section 5.1)."""


@dataclass(frozen=True, slots=True, order=True)
class TrafficProfile:
    """The traffic that one NF receives."""

    flows: float  # concurrent flows
    packet_size: float  # bytes per packet
    mtbr: float = 0.0  # Match-to-byte ratio: regex matches per MB (10^6 bytes) of payload. None of them is zero.

    @classmethod
    def from_mapping(cls, values: Mapping[str, float]) -> "TrafficProfile":
        """The profile with these attributes; a missing `mtbr` means no matches."""
        found = values["flows"], values["packet_size"], values.get("mtbr", 0.0)
        return cls(*(float(value) + 0.0 for value in found))  # -0.0 becomes 0.0, which is written otherwise

    def as_dict(self) -> dict[str, float]:
        """Attribute values by name, in the order of `ATTRIBUTES`."""
        return {"flows": self.flows, "packet_size": self.packet_size, "mtbr": self.mtbr}

    def as_tuple(self) -> tuple[float, float, float]:
        """Attribute values in the order of `ATTRIBUTES`."""
        return self.flows, self.packet_size, self.mtbr
