"""Admission of latency SLOs to a GPU (paper 003), and its model.

    device, SLOs -> batches, minibatches and transfer orders -> latency by stage -> what is admitted, and a bound

- What goes in and comes out: `device`, `plan`, `registry` and `methods/`.
- The model: `latency` by stage, and in it the wait for the `bus`; a `bound` that holds for every method.
- Admission of one SLO after another: `greedy`, with `batches`, `sms` and the `queue` on the bus, in arrays (`tables`).
- Why an SLO is rejected, and what would be `enough`.
- As many SLOs as any plan: `exact/`."""
