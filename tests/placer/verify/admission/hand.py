"""An admission that is worked out by hand."""

from typing import Any

DEVICE: dict[str, Any] = {
    "sms": 2,
    "executors_per_sm": 4,
    "packets_per_executor": 32,
    "workers": 3,
    "arbitration": "one-shot",
    "transfer_us": {"header": [0.125, 4.0], "payload": [0.25, 0.0]},
    "nfs": {
        "firewall": {"class": "header", "pre_post_us": 3.0, "kernel_us": [10.0, 20.0]},
        "nids": {"class": "payload", "pre_post_us": 2.0, "kernel_us": [15.0, 30.0]},
    },
    "sharing_us": {"firewall": {"nids": 7.0}, "nids": {"firewall": 5.0}},
}
"""`nids` on SM 1 has nobody to share with."""

SLOS: list[dict[str, Any]] = [
    {"id": "a", "nf": "firewall", "rate_kpps": 1000.0, "latency_us": 125.0},
    {"id": "b", "nf": "nids", "rate_kpps": 900.0, "latency_us": 150.0},
    {"id": "c", "nf": "nids", "rate_kpps": 1.0, "latency_us": 20.0},
]

ANSWER: dict[str, Any] = {
    "admitted": [
        {"id": "a", "batch": 64, "order": 1, "minibatches": [{"sm": 0, "packets": 64}]},
        {"id": "b", "batch": 64, "order": 2, "minibatches": [{"sm": 0, "packets": 32}, {"sm": 1, "packets": 32}]},
    ],
    "rejected": [{"id": "c", "cause": "kernel"}],
    "bound": 3,
    "proven": False,
    "seconds": 0.0001,
}
"""`a` transfers for 12 us, `b` for 16 us; `b` batches for 63 packets of 10/9 us."""
