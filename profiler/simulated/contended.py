"""A second simulated card: the BlueField-2 with slower memory and NFs that contend more.

Drops on `BLUEFIELD_2` lie towards the lower ends of the bands of Tomur's figure 1: nearly four NFs fit on every NIC, so
that card hardly distinguishes strategies. This one is calibrated to the upper ends. Its NFs are co-located with up to
three others for figure 1. The errors are those of table 2 (`placer reproduce table2`, 270 co-locations per NF). The
other figures are means over 25 sequences of 500 arrivals (`placer reproduce table6-optimal --scale 0.25`), with the
models of the recorded profile and a budget of 2 % SLA violations:

=============================  =============  =================  ======
figure                         published      this card          meets
=============================  =============  =================  ======
median drop per NF             1.9 - 10.6 %   3.0 - 10.5 %       yes
95th percentile of the drop    4.2 - 62.2 %   5.0 - 60.8 %       yes
mean error of Tomur            3.7 %          3.1 %              yes
mean error of SLOMO            17.5 %         16.2 %             yes
NFs per NIC at the optimum     2.96           3.04               nearly
wastage of monopolization      196 %          204 %              nearly
wastage of greedy              19.0 %         18.4 %             yes
SLA violations of greedy       16.5 %         22.5 %             no
wastage with Tomur             0.5 %          7.3 %              no
SLA violations with Tomur      1.9 %          2.4 %              no
wastage with SLOMO             -21.8 %        -2.6 %             no
SLA violations with SLOMO      24.4 %         36.8 %             no
=============================  =============  =================  ======

The rows of Tomur and SLOMO are of placement that did not yet count open NICs from the start of a sequence. Since then,
Tomur wastes 4.9 % with 1.7 % SLA violations from a profile of 600 runs per NF, and 3.0 % with exact throughputs
(`python -m benches budget`, 20 sequences): on this card, that much is due to placing NFs one by one.

Only FlowMonitor's 95th percentile comes near 62 %: with NIDS, it gets about 40 % of the regex accelerator. The others'
lie below 30 %. Two facts that hold for `BLUEFIELD_2` do not hold here: FlowMonitor does not follow the throughput
measured on a real card, and FlowStats does not follow Tomur's figures 6 and 9.

All values below that differ from `BLUEFIELD_2` and `NFS` are fitted to the first five rows, none is from a data sheet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from profiler.simulated.card import BLUEFIELD_2
from profiler.simulated.nfs import NFS, NfSpec, Structure, headers, payload, per_flow, shared_table

BLUEFIELD_2_CONTENDED = replace(BLUEFIELD_2, model="bluefield-2-contended", dram_ns=145.0)

_STRUCTURES: Mapping[str, tuple[Structure, ...]] = {
    "FlowStats": (headers(), per_flow(72, 15.5, writes=0.5)),
    "IPRouter": (headers(), shared_table(1.2, 5.7)),
    "IPTunnel": (headers(), per_flow(24, 1), payload(0.65, touches=2, overlap=9)),
    "NAT": (headers(), per_flow(75, 8.5, writes=0.2)),
    "FlowMonitor": (headers(2.0), per_flow(237, 10.5, writes=0.4)),
    "NIDS": (headers(2.0), per_flow(60, 4), payload(0.8, touches=2, overlap=16)),
    "ACL": (headers(), shared_table(1.1, 6.8)),
    "FlowClassifier": (headers(), per_flow(57, 6.0)),
    "FlowTracker": (headers(), per_flow(60, 8.0, writes=0.4)),
}


def _contended(nf: NfSpec) -> NfSpec:
    """The NF with its tables of this card. NIDS, with three queues, spends most of its time on the accelerator."""
    nf = replace(nf, structures=_STRUCTURES.get(nf.name, nf.structures))
    return replace(nf, instructions=600, queues=(("regex", 3),)) if nf.name == "NIDS" else nf


CONTENDED_NFS: tuple[NfSpec, ...] = tuple(map(_contended, NFS))
"""The NFs of `NFS`. The nine that Tomur places (tables 2 and 6) have other tables and access them more often."""
