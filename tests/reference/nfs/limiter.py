"""Limiter: a token bucket, as its parameters describe it."""

from tests.reference.nfs.model import Contract, FunctionModel, Left
from tests.reference.nfs.traffic import Mix, Sent

CHECKSUM = 4
DEFAULT_BURST_US = 5000


class Bucket:
    """Tokens that a rate fills; a packet passes while any are left, and takes its own, also if they are more."""

    def __init__(self, per_us: float, size: float) -> None:
        self.limits, self.per_us = per_us > 0, per_us
        self.size = size or per_us * DEFAULT_BURST_US
        self.tokens, self.filled_us = self.size, 0

    def fill(self, now_us: int) -> None:
        """Add what the rate gave since the last time."""
        self.tokens = min(self.tokens + (now_us - self.filled_us) * self.per_us, self.size)
        self.filled_us = now_us

    def has_some(self) -> bool:
        """Whether a packet may pass."""
        return not self.limits or self.tokens > 0


class LimiterModel(FunctionModel):
    """Each side has a bucket of bytes and one of packets. Rates are such that no sum is rounded."""

    nf = "Limiter"
    contract = Contract.RATE
    variants = (
        {"rate_mbps": "4", "rate_kpps": "3.90625", "burst_packets": "64"},
        {"rate_mbps": "0", "rate_kpps": "1.953125"},
        {"rate_mbps": "2", "burst_bytes": "100"},
        {"rate_mbps": "4", "checksums": "0"},
    )

    def prepare(self) -> None:
        rates = float(self.settings["rate_mbps"]) / 8, float(self.settings.get("rate_kpps", 0)) / 1000
        sizes = self.number("burst_bytes", 0), self.number("burst_packets", 0)
        self.sides = [[Bucket(*pair) for pair in zip(rates, sizes, strict=True)] for _ in range(2)]

    def mix(self) -> Mix:
        return Mix(ipv6=0.5)

    def take(self, sent: Sent) -> Left:
        size, buckets = len(sent.frame) + CHECKSUM * int(self.number("checksums", 1)), self.sides[sent.side]
        for bucket in buckets:
            bucket.fill(sent.time_us)
        passes = all(bucket.has_some() for bucket in buckets)
        fate = "passed" if passes else "dropped"
        self.counted[fate] += 1
        self.counted[f"{fate}_bytes"] += size
        if not passes:
            return [], []
        for bucket, tokens in zip(buckets, (size, 1), strict=True):
            bucket.tokens -= tokens
        return [sent.frame], []
