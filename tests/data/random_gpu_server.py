"""How batches pass through a server with a GPU (see random_gpu.py): an event queue, times in us."""

import heapq
import math
from collections import deque

from random_program import spread

RING, UNDER_WAY = 4096, 4
LANES = 32


class Nf:
    """A network function: what it moves, and what a batch and a packet cost."""

    def __init__(self, draw, name):
        self.name, self.moves = name, draw.choice(("header", "payload", "both"))
        self.pre = (spread(draw, 2, 8), spread(draw, 0.02, 0.12))
        self.post = (spread(draw, 1, 5), spread(draw, 0.01, 0.08))
        self.work = (spread(draw, 2, 15), spread(draw, 2, 60) / 850 if self.moves != "header" else 0.0)
        self.per_warp = spread(draw, 0.005, 0.08)
        self.issue, self.friction = draw.uniform(0.1, 0.6), draw.uniform(0.02, 0.15)
        self.table_kb, self.waits = spread(draw, 4, 200), draw.uniform(0.2, 0.8)

    def bytes_moved(self, size):
        """Bytes of a packet to the card, and back."""
        return {"header": (64, 4), "payload": (max(size - 54, 0), 4), "both": (size, size + 32)}[self.moves]

    def kernel_us(self, size, packets):
        """Time of a part alone on its SM, once it is dispatched."""
        fixed, per_byte = self.work
        return (fixed + per_byte * size) * (1 + self.per_warp * (math.ceil(packets / LANES) - 1))


def arrivals(load, gpu, until):
    """Times of packets: bursts, whose gaps are exponential, or of two kinds, short and long."""
    draw, mean = load["draw"], 1e3 / load["rate_kpps"]
    spacing, now, found = mean / 20, -draw.random() * mean, []
    while now < until:
        size = 1 + int(draw.expovariate(1 / (gpu.burst - 1))) if gpu.burst > 1 else 1
        found += [now + at * spacing for at in range(size)]
        gap = size * mean - size * spacing
        if gpu.on_off:
            gap *= 0.4 if draw.random() < 0.8 else 3.4
        now += size * spacing + draw.expovariate(1 / gap)
    return [time for time in found if 0 <= time < until]


class Batch:
    """Packets under way: when they came, and when each step was done."""

    def __init__(self, load, packets, taken):
        self.load, self.packets, self.taken = load, packets, taken
        self.ready = self.sent = self.arrived = self.started = self.done = self.back = 0.0
        self.left = 0


class Part:
    """What of a batch is on one SM: the work that is left, and how fast it goes."""

    def __init__(self, batch, sm, packets, work):
        self.batch, self.sm, self.packets, self.work = batch, sm, packets, work
        self.speed, self.since, self.version = 1.0, 0.0, 0


def run(gpu, loads, until):
    """Per load, (came, left, times in each stage and when its batch was taken) of every packet that left."""
    server = Server(gpu, loads)
    for load in loads:
        load |= {"came": deque(arrivals(load, gpu, until)), "ring": deque(), "back": deque(), "on_card": deque()}
        load |= {"free": 0.0, "under_way": 0, "running": None, "left": []}
        server.wake(load)
    server.work()
    return [load["left"] for load in loads]


class Server:
    """The events of a run."""

    def __init__(self, gpu, loads):
        self.gpu, self.loads, self.queue, self.number = gpu, loads, [], 0
        self.waiting, self.busy = ([], []), [False, False]
        self.parts = {}

    def at(self, time, action, *arguments):
        self.number += 1
        heapq.heappush(self.queue, (time, self.number, action, arguments))

    def work(self):
        while self.queue:
            time, _, action, arguments = heapq.heappop(self.queue)
            action(time, *arguments)

    def wake(self, load):
        """Look again when the worker is free and its next batch complete."""
        load["look"] = load.get("look", 0) + 1
        if load["back"]:
            self.at(max(load["free"], load["back"][0].back), self.look, load, load["look"])
        elif load["under_way"] < UNDER_WAY and (load["ring"] or load["came"]):
            missing = load["batch"] - len(load["ring"])
            complete = math.inf if missing > len(load["came"]) else load["came"][missing - 1] if missing > 0 else 0.0
            when = max(load["free"], min(complete, (load["ring"] or load["came"])[0] + load["flush_us"]))
            if when < math.inf:
                self.at(when, self.look, load, load["look"])

    def look(self, now, load, look):
        """The worker sends what came back, or takes a batch."""
        if look != load["look"]:
            return
        if load["back"]:
            self.send(now, load, load["back"].popleft())
            return
        room = max(RING, 2 * load["batch"])
        while load["came"] and load["came"][0] <= now:
            time = load["came"].popleft()
            if len(load["ring"]) < room:
                load["ring"].append(time)
        batch = Batch(load, [load["ring"].popleft() for _ in range(min(load["batch"], len(load["ring"])))], now)
        fixed, each = load["nf"].pre
        batch.ready = load["free"] = now + fixed + each * len(batch.packets)
        load["under_way"] += 1
        self.at(batch.ready, self.request, 0, batch)
        self.wake(load)

    def send(self, now, load, batch):
        fixed, each = load["nf"].post
        begin = now + fixed
        per_batch = [batch.sent - batch.ready, batch.arrived - batch.sent, batch.started - batch.arrived]
        per_batch += [batch.done - batch.started, batch.back - batch.done]
        for at, came in enumerate(batch.packets):
            left = begin + each * (at + 1)
            worker = batch.ready - batch.taken + left - batch.back
            load["left"].append((came, left, (batch.taken - came, worker, *per_batch, batch.taken)))
        load["free"] = begin + each * len(batch.packets)
        load["under_way"] -= 1
        self.wake(load)

    def request(self, now, bus, batch):
        """A batch waits for a bus: to the card by order, back as it comes."""
        self.number += 1
        heapq.heappush(self.waiting[bus], (batch.load["order"] if bus == 0 else now, self.number, batch))
        self.grant(now, bus)

    def grant(self, now, bus):
        if self.busy[bus] or not self.waiting[bus]:
            return
        batch = heapq.heappop(self.waiting[bus])[2]
        setup, each, speed = self.gpu.buses[bus]
        moved = batch.load["nf"].bytes_moved(batch.load["size"])[bus] * len(batch.packets)
        needs = (
            setup * batch.load["draw"].uniform(0.95, 1.05)
            + each * len(batch.packets)
            + math.ceil(moved / 64) * 64 / speed
        )
        self.busy[bus] = True
        if bus == 0:
            batch.sent = now
        self.at(now + needs, self.transferred, bus, batch)

    def transferred(self, now, bus, batch):
        self.busy[bus] = False
        if bus == 0:
            batch.arrived = now
            batch.load["on_card"].append(batch)
            self.start(now, batch.load)
        else:
            batch.back = now
            batch.load["back"].append(batch)
            self.wake(batch.load)
        self.grant(now, bus)

    def start(self, now, load):
        """The next batch of an NF has its executors once the one before is done."""
        if load["running"] or not load["on_card"]:
            return
        batch = load["running"] = load["on_card"].popleft()
        batch.started, left = now, len(batch.packets)
        for sm, most in load["parts"]:
            packets, left = min(left, most), left - min(left, most)
            if packets:
                work = load["nf"].kernel_us(load["size"], packets) * load["draw"].uniform(0.97, 1.03)
                batch.left += 1
                self.at(now + self.gpu.dispatch_us, self.begin, Part(batch, sm, packets, work))

    def begin(self, now, part):
        part.since = now
        self.parts.setdefault(part.sm, []).append(part)
        self.share(now, part.sm)

    def end(self, now, part, version):
        if version != part.version:
            return
        self.parts[part.sm].remove(part)
        self.share(now, part.sm)
        batch = part.batch
        batch.left -= 1
        if batch.left == 0:
            batch.done, batch.load["running"] = now, None
            self.request(now, 1, batch)
            self.start(now, batch.load)

    def share(self, now, sm):
        """Parts on an SM go at new speeds."""
        parts = self.parts[sm]
        for part in parts:
            part.work -= (now - part.since) * part.speed
            part.since, part.speed, part.version = now, self.speed(part, parts), part.version + 1
            self.at(now + max(part.work, 0.0) / part.speed, self.end, part, part.version)

    def speed(self, part, parts):
        """How fast a part goes beside others on its SM, of 1 alone."""
        gpu, nf = self.gpu, part.batch.load["nf"]
        others = [other for other in parts if other is not part]
        if gpu.discipline == "slots":
            needed = sum(one.batch.load["nf"].issue * math.ceil(one.packets / gpu.packets) for one in others)
            own = nf.issue * math.ceil(part.packets / gpu.packets)
            return min(1.0, max(gpu.slots, own) / (own + needed)) if others else 1.0
        if gpu.discipline == "friction":
            return 1 / (1 + sum(one.batch.load["nf"].friction * math.sqrt(one.packets / gpu.packets) for one in others))
        tables = {one.batch.load["nf"].name: one.batch.load["nf"].table_kb for one in others} | {nf.name: nf.table_kb}
        alone, together = (min(1.0, gpu.cache_kb / size) for size in (nf.table_kb, sum(tables.values())))
        return 1 / (1 + nf.waits * (alone - together))
