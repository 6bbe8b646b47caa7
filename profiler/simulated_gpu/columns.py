"""What the compiled loop reads and writes: few arrays with named columns, because each costs time to compile."""

from typing import NamedTuple

from profiles.arrays import Floats, Ints

EXECUTORS, TEMPORAL, SPATIAL = range(3)
"""Who places kernels: executors that are assigned, or the scheduler of the GPU in either way."""

TO_CARD, TO_HOST = range(2)  # the buses

SETUP, PER_PACKET, SPEED, PAYLOAD, HEADER, BUFFER, PER_BUFFER, SERVES, UNTIL = range(9)
"""`World.buses`, a row per bus: the fields of `Bus`, in their order; the NF that it serves (-1: none), until when."""

(
    MODE, SMS, LANES, SCHEDULERS, PACKETS_PER_EXECUTOR, CACHE_KB, CACHE_US, MEMORY_US, MEMORY_SPEED, MEMORY_WAIT,
    DISPATCH_US, EXECUTOR_US, LAUNCH_US, SWITCH_US, RING, IN_FLIGHT, ACTIVE, SINCE, USED, FREE_SMS, LAST_NF,
) = range(21)  # fmt: skip
"""`World.card`: who places kernels, and the fields of `GpuCard`; parts that execute, the time up to which they have,
the share of the memory's bandwidth that they use, SMs that no NF has, and the NF whose kernel began last."""

(
    ORDER, BATCH, KIND, PACKETS, BATCHES, PARTS, KEPT, CONSUMED, FOLLOWING, N_TAKEN, N_SENT, N_ARRIVED, N_STARTED,
    N_DONE, N_BACK_SENT, N_BACK, N_POSTED, RUNNING, LOST,
) = range(19)  # fmt: skip
NF_COLUMNS = 19
"""`World.nfs`, a row per NF and one more: its order (-1: none), batch and kind, and where its packets, batches and
parts begin, which is where those of the NF before end; packets that the ring took and the worker took, the next to
come; batches that passed each step; parts that execute; packets that found the ring full."""

(
    FLUSH, PRE, PRE_PACKET, POST, POST_EACH, UP_BYTES, BACK_BYTES, ISSUE, STALL, MATCH_ISSUE, MATCH_STALL, MATCHES,
    READS, LOCALITY, TABLE_KB, CARD_BYTES, CORE_FREE, WAKE,
) = range(18)  # fmt: skip
"""`World.costs`, a row per NF: the time-out of a batch; time of the worker before and after, fixed and per packet;
bytes of a packet on either bus; time of a warp at the scheduler and waiting for its own results, and of each match;
matches per packet; reads; the share of them that a cache can hold; size of the tables; bytes of a packet in the card's
memory; when its worker is done with what it does, and when it has something to do."""

NF, SM, PART_PACKETS, LIVE = range(4)
"""`World.parts`, a row per part: its NF, its SM, and its packets at most; the last column lists parts that execute."""

WORKER, TRANSFER, WAY_BACK, DISPATCH, MEMORY = range(5)
DRAWS = 5  # `World.draws`, a row per batch, between 0 and 1: how each step deviates; then the matches of each part

TAKEN, READY, SENT, ARRIVED, STARTED, DONE, BACK_SENT, BACK, POSTED, POST_PACKET, FIRST, COUNT = range(12)
COLUMNS = 12
"""`World.times`, a row per batch (us): the worker takes it and has prepared it, the bus begins and ends, its kernel
begins and ends, the bus back begins and ends, the worker has it again, and how long each of its packets then takes; its
first packet, among those that were not lost, and how many it has; then the end of each part."""

AT, ON, LEFT, RATE, WAITING, WIDTH, PART_ISSUE, PART_STALL, PART_READS, PART_COUNT = range(10)
PART_STATE = 10
"""`World.states`, a row per part: when it changes; 1 while it is dispatched, 2 while it executes; the share of its work
that is left, and how fast it goes; the share of its time at the scheduler; warps per scheduler, time of each at the
scheduler and waiting for its own results, reads, and packets."""

QUEUE, TABLES, PRESENT = range(3)
"""`World.sms`, a row per SM: warps at a scheduler on average, size of the tables in use, and how many parts of each
kind execute."""


class World(NamedTuple):
    """The server, its NFs and packets, and where everything stands."""

    buses: Floats
    card: Floats
    nfs: Ints
    costs: Floats
    parts: Ints
    draws: Floats
    packets: Floats
    times: Floats
    states: Floats
    sms: Floats
