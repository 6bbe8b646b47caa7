"""A simulated server that runs fourteen network functions, and chains of them, on sixteen cores.

Everything here is simulated. The functions are calibrated to the cycles per packet that Lemur publishes of functions in
BESS on two 8-core Xeon Bronze 3106 at 1.7 GHz (Yen et al., CoNEXT 2020, section 5), at 1,500 B on one core, without the
source. Published are worst cases; so are those of this server: over flows up to 100,000 and, for UrlFilter, with 600
matches/MB. At default traffic, the functions with tables of flows and UrlFilter take up to 4 % less.

===========  =========  ===========  ===========================================================================
function     published  this server  what takes the cycles
===========  =========  ===========  ===========================================================================
Encrypt      9,123      9,123        6.1 per byte (AES-CBC); packets grow by 24 B
Decrypt      2,843      2,842        1.8 per byte; packets shrink by 24 B
FastEncrypt  6,820      6,821        4.5 per byte (ChaCha); packets grow by 12 B
Dedup        33,186     33,186       22 per byte, and a store of fingerprints larger than the cache; 30 % of the payload
                                     is repeated and removed
Tunnel       289        289          instructions; packets grow by 4 B
Detunnel     230        230          instructions; packets shrink by 4 B
Limiter      20         20           instructions; its bucket is never empty, so it drops nothing
UrlFilter    6,994      6,988        3.5 per byte, an automaton of 1.5 MB, matches; a fifth of the matches block
Monitor      310        310          a table with an entry for each of at most 12,000 flows, half of the accesses write
NAT          519        519          a table with at most 12,000 entries
LB           564        564          a table with at most 12,000 entries
Match        976        976          16 filters, 50.9 each
ACL          985        985          200 rules, 3.77 each; a tenth of the packets is denied
ACL, 1,024   4,091      4,091        the same with 1,024 rules
rules
IPv4Fwd      -          250          not published; chosen. A table of 10,000 routes
===========  =========  ===========  ===========================================================================

Assumed are: how cycles divide into instructions, bytes and memory accesses; sizes of tables; what a function drops, and
by how much it changes packets; the source, the sink and the rings; all of latency; and that packets which are offered
to an NF at a rate come in bursts, the longer the fewer flows (`arrivals`). That NAT and Limiter cannot run on
several cores is taken from the paper, which says so of Limiter, and does not split NAT's one space of ports. The two
sockets are one here, with one cache of 22 MB (2 x 11 MB) and six channels of DDR4-2133, of which 0.8 is reached."""

from profiler.simulated.card import Card
from profiler.simulated.chain_demand import (
    DENIED_PARAMETER,
    ENTRIES_PARAMETER,
    REDUNDANCY_PARAMETER,
    NfParameter,
    PacketPath,
    StageSpec,
    Table,
)

SERVER_CARD = Card(
    model="server-16", cores=16, clock_ghz=1.7, l2_bytes_per_core=1024 * 1024, llc_bytes=22 * 1024 * 1024, io_share=0.0,
    l2_ns=6.0, l3_ns=24.0, dram_ns=70.0, dram_gbps=80.0, dram_queue_ns=15.0, dma_leak=0.0, line_gbps=1e9, window=48,
    engines={},
)  # fmt: skip

SERVER_PATH = PacketPath(
    source_instructions=90, sink_instructions=40, ring_instructions=45, ring_batch_instructions=400,
    batch_instructions=160, ipc=1.6, batch=32, pool=2048, ring=1024, header_lines=2, payload_overlap=10,
    remote_overlap=4, code_cache=32 * 1024,
)  # fmt: skip

KB = 1024.0
MB = 1e6


def _flow_table(entry_bytes: float, accesses: float, writes: float) -> Table:
    return Table(accesses=accesses, bytes_each=entry_bytes, writes=writes)


def _rules(entry_bytes: float) -> Table:
    """A list that every packet walks to its end."""
    return Table(accesses_each=entry_bytes / 64, bytes_each=entry_bytes, of="rules", overlap=8)


_ENTRIES = {ENTRIES_PARAMETER: NfParameter(1000, 1_000_000, 12_000)}

SERVER_NFS: tuple[StageSpec, ...] = (
    StageSpec("Null", 0, code_bytes=0),
    StageSpec("Encrypt", 365, 2.4, 14.7, payload_touches=2, payload_writes=0.5, code_bytes=5 * KB, added_bytes=24),
    StageSpec("Decrypt", 330, 2.4, 4.3, payload_touches=2, payload_writes=0.5, code_bytes=5 * KB, added_bytes=-24),
    StageSpec("FastEncrypt", 375, 2.6, 11.8, payload_touches=2, payload_writes=0.5, code_bytes=4 * KB, added_bytes=12),
    StageSpec(
        "Dedup", 1420, 1.9, 42.0,
        tables=(Table(accesses=8, fixed_bytes=48 * MB, writes=0.4, overlap=3),),
        payload_touches=3, payload_writes=0.2, code_bytes=6 * KB,
        parameters={REDUNDANCY_PARAMETER: NfParameter(0, 90, 30)},
    ),
    StageSpec("Tunnel", 462, code_bytes=1 * KB, added_bytes=4),
    StageSpec("Detunnel", 368, code_bytes=1 * KB, added_bytes=-4),
    StageSpec("Limiter", 32, code_bytes=1 * KB, replicable=False),
    StageSpec(
        "UrlFilter", 740, 1.7, 6.0, 320,
        tables=(Table(accesses_per_byte=0.05, fixed_bytes=1.5 * MB, overlap=2),),
        payload_touches=1, code_bytes=4 * KB, blocked_per_match=0.2,
    ),
    StageSpec("Monitor", 416, tables=(_flow_table(96, 2.2, 0.5),), parameters=_ENTRIES),
    StageSpec(
        "NAT", 690, tables=(_flow_table(128, 3.0, 0.3),), parameters=_ENTRIES, code_bytes=3 * KB, replicable=False,
    ),
    StageSpec("LB", 776, tables=(_flow_table(112, 3.0, 0.2),), parameters=_ENTRIES, code_bytes=3 * KB),
    StageSpec(
        "Match", 261, instructions_each={"rules": 80}, code_bytes=6 * KB,
        tables=(_rules(40),), parameters={"rules": NfParameter(1, 256, 16)},
    ),
    StageSpec(
        "ACL", 374, instructions_each={"rules": 5.266}, tables=(_rules(24),),
        parameters={"rules": NfParameter(1, 4096, 200), DENIED_PARAMETER: NfParameter(0, 100, 10)},
    ),
    StageSpec(
        "IPv4Fwd", 375, tables=(Table(accesses=1.5, bytes_each=64, of="routes"),),
        parameters={"routes": NfParameter(1, 500_000, 10_000)},
    ),
)  # fmt: skip
