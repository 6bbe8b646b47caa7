"""Ends reservations while the service runs."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from placer.fleet.event_lines import event_line
from placer.fleet.events import Expire
from placer.fleet.protocol import Reader
from placer.fleet.service.expiring import LOOK_EVERY_S
from placer.fleet.service.http.writer import Overloaded, Stopped, Writer
from placer.fleet.state.saved import Unreachable


class Expirer:
    """Sends the events `expire`, by the clock of the writer's reader. Of several agents the first one ends a
    reservation, and the events of the others change nothing."""

    def __init__(self, writer: Writer) -> None:
        of = writer.reader
        self._writer = writer
        self._clock = of.clock
        self._reader = Reader(of.default_traffic, of.check, of.workload_of, of_log=True)

    async def run(self) -> None:
        """End reservations until cancelled."""
        while not self._writer.stopping:
            await self.end_due()
            await asyncio.sleep(LOOK_EVERY_S)

    async def end_due(self) -> None:
        """End those that are due now."""
        due = self._writer.engine.due_reservations(self._clock())
        lines = [event_line(Expire(tenant_id)).encode() for tenant_id in due]
        if lines:
            with suppress(Stopped, Overloaded, Unreachable):  # they are due the next time, too
                await self._writer.submit(lines, reader=self._reader)
