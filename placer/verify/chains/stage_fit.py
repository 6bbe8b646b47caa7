"""Whether tables fit the stages of a switch: each in a stage after those of its predecessors there, by blocks."""

from collections.abc import Collection, Iterator, Sequence

from placer.rack.chain import Chain
from placer.rack.rack import Rack
from placer.verify.chains.table_fit import TableFit

Table = tuple[int, int]
MOST_STATES = 200_000  # sets of tables that are looked at, before the question stays open


def stages_for(chains: Sequence[Chain], rack: Rack, tables: Collection[Table]) -> int | None:
    """The stages that so many tables may use; None without a bound. Fewer where some NF is not on the switch."""
    if rack.switch.stages is None:
        return None
    usable = rack.switch.stages - rack.switch.reserved_stages
    all_on_switch = len(tables) == sum(len(chain.nfs) for chain in chains)
    return max(usable - (0 if all_on_switch else rack.overheads.stages), 0)


def fits(chains: Sequence[Chain], rack: Rack, tables: Collection[Table]) -> bool | None:
    """Whether tables fit the switch; None if it takes too long to decide."""
    stages = stages_for(chains, rack, tables)
    if stages is None or not tables:
        return True
    if rack.stage_oracle == "tables":
        return False if TableFit(chains, rack, tables, stages).is_impossible() else None
    return _Filling(chains, rack, tables, stages).decide()


class _Filling:
    """Fills stage by stage; sets of tables are bits of whole numbers."""

    def __init__(self, chains: Sequence[Chain], rack: Rack, tables: Collection[Table], stages: int) -> None:
        numbers = {table: number for number, table in enumerate(sorted(tables))}
        self.stages, self.most = stages, rack.switch.blocks_per_stage
        self.blocks = [rack.costs[chains[chain].nfs[nf].nf].switch_blocks or 0 for chain, nf in numbers]
        self.before = [0] * len(numbers)
        after: list[list[int]] = [[] for _ in numbers]
        for (chain, nf), number in numbers.items():
            for edge in chains[chain].edges:
                if edge.head == nf and (tail := numbers.get((chain, edge.tail))) is not None:
                    self.before[number] |= 1 << tail
                    after[tail].append(number)
        self.behind = [0] * len(numbers)  # the most tables in a row behind each
        changed = True
        while changed:
            changed = False
            for number, others in enumerate(after):
                behind = max((self.behind[other] + 1 for other in others), default=0)
                changed |= behind != self.behind[number]
                self.behind[number] = behind
        self.looked_at = 0

    def decide(self) -> bool | None:
        if max(self.blocks) > self.most or max(self.behind) >= self.stages:
            return False
        if sum(self.blocks) > self.most * self.stages:
            return False
        return True if self._fits_greedily() else self._search()

    def _fits_greedily(self) -> bool:
        """Whether it fits if each stage takes first what most tables wait for, then the largest."""
        held, everything = 0, (1 << len(self.blocks)) - 1
        for _ in range(self.stages):
            free, filled = self.most, held
            for number in sorted(self._ready(held), key=lambda one: (-self.behind[one], -self.blocks[one])):
                if self.blocks[number] <= free:
                    free -= self.blocks[number]
                    filled |= 1 << number
            held = filled
        return held == everything

    def _search(self) -> bool | None:
        everything = (1 << len(self.blocks)) - 1
        reached = {0}
        for left in range(self.stages - 1, -1, -1):
            following: set[int] = set()
            for held in reached:
                for filled in self._fillings(held, left):
                    if filled == everything:
                        return True
                    following.add(filled)
                if self.looked_at > MOST_STATES:
                    return None
            reached = following
        return False

    def _ready(self, held: int) -> list[int]:
        return [
            number for number, before in enumerate(self.before) if not held >> number & 1 and before & held == before
        ]

    def _fillings(self, held: int, left: int) -> Iterator[int]:
        """What is held after the next stage, for each largest set that it may take, if the stages left may do. A table
        never lies worse in an earlier stage, so a stage is filled until nothing that may lie there fits."""
        ready = self._ready(held)
        urgent = [number for number in ready if self.behind[number] >= left]

        def extend(at: int, filled: int, free: int) -> Iterator[int]:
            self.looked_at += 1
            if self.looked_at > MOST_STATES:
                return
            if at == len(ready):
                if all(filled >> number & 1 or self.blocks[number] > free for number in ready):
                    yield filled
            else:
                number = ready[at]
                if self.blocks[number] <= free:
                    yield from extend(at + 1, filled | 1 << number, free - self.blocks[number])
                if number not in urgent:
                    yield from extend(at + 1, filled, free)

        for filled in extend(0, held, self.most):
            waiting = sum(need for number, need in enumerate(self.blocks) if not filled >> number & 1)
            if waiting <= self.most * left:
                yield filled
