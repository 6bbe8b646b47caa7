"""What is kept back of a budget of SLA violations, because the errors behind them repeat and were selected.

The sum of chances is what a plan is expected to violate where each error is drawn anew. Two things are not in it.

Errors repeat: an error belongs to a workload in a co-location, and strikes on every NIC with that co-location at once.
So violations spread around the sum, the more the fewer co-locations a plan has. Tenants in the same case fail together,
so of one case with chances q(1), q(2), ... those count that are likely to fail, their participation ratio: the variance
is (sum q)^3 / sum q^2 - (sum q)^2, added up over cases (`ExpectedViolations.repeated_pct`).

Errors are selected: of thousands of co-locations a plan uses those that look best, and of these some only look so (the
optimizer's curse: Smith & Winkler, Management Science 52(3), 2006, https://doi.org/10.1287/mnsc.1050.0451). An error
model that holds on average of all co-locations expects too little of these. The assumption is that it does so in
proportion; `SELECTED_RESERVE` was measured on testbeds (docs/models.md)."""

from placer.evaluate.expected_violations import ExpectedViolations

SELECTED_RESERVE = 0.4  # violations by selection, per expected one
REPEATED_RESERVE = 0.4  # standard deviations of the violations that are kept back


def reserve_pct(expected: ExpectedViolations) -> float:
    """What is kept back, per 100 instances placed."""
    return SELECTED_RESERVE * expected.mean_pct + REPEATED_RESERVE * expected.repeated_pct


def planned_pct(expected: ExpectedViolations) -> float:
    """What a plan may take of a budget: the violations that are expected, and the reserve, per 100 instances placed."""
    return expected.mean_pct + reserve_pct(expected)
