"""How much of the code of a rack is generated, counted as Lemur counts it (section 5.3): lines, without data.

What NF authors write is one file per kind and platform; what is generated is the rest of the programs. Lines that are
blank or comments alone do not count, nor do entries of tables, and files that functions read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from placer.rack.compiler.compile import CompiledRack
from placer.rack.compiler.ebpf.source import SNIPPET_FOLDER, source_of
from placer.rack.compiler.graph import DeviceKind
from placer.rack.compiler.p4.emit import p4_text
from placer.rack.compiler.switch.compose import compose
from placer.rack.compiler.switch.flow import BLOCKS

NF_FOLDER = SNIPPET_FOLDER.parent / "functions"
COMMENT_MARKS = ("//", "/*", "*", "#", ";")
PUBLISHED_GENERATED, PUBLISHED_STEERING, PUBLISHED_ALL = 820, 600, 1700
"""Lines of Lemur for its chains 1 to 4, about: of P4."""


@dataclass(frozen=True)
class CodeShare:
    """Lines of code of a rack.

    Parameters
    ----------
    generated
        Of the programs; those of the switch as P4.
    steering
        Of them, on the switch: what would be there if its NFs did nothing.
    written
        By authors of NFs, each kind once per platform on which the rack runs it.
    """

    generated: int
    steering: int
    written: int

    @property
    def percent(self) -> float:
        """The generated share of all lines."""
        return 100.0 * self.generated / (self.generated + self.written)


def code_share(rack: CompiledRack) -> CodeShare | None:
    """Lines of the programs of a rack; None where the switch runs no P4 program."""
    if rack.switch is None:
        return None
    steering = _lines(p4_text(compose(rack.routing, rack.instances, only_steering=True), entries=False))
    generated = _lines(p4_text(rack.switch, entries=False))
    generated += sum(_lines(server.chain) for server in rack.servers.values())
    snippets = {step.function.snippet for nic in rack.nics.values() for step in nic.steps}
    on_card = sum(_lines((SNIPPET_FOLDER / name).read_text(encoding="utf-8")) for name in snippets)
    generated += sum(_lines(source_of(nic)) for nic in rack.nics.values()) - on_card * bool(rack.nics)
    return CodeShare(generated, steering, sum(map(_lines, _write(rack))) + on_card)


def share_text(share: CodeShare) -> str:
    """The share in a line, beside the published one."""
    published = 100 * PUBLISHED_GENERATED / PUBLISHED_ALL
    return (
        f"{share.generated} lines generated, {share.steering} of them steer packets on the switch; NF authors wrote "
        f"{share.written}: {share.percent:.0f} % generated. Lemur, of P4 alone for its chains 1 to 4: about "
        f"{PUBLISHED_GENERATED} of {PUBLISHED_ALL} lines ({published:.0f} %), {PUBLISHED_STEERING} of them steering.\n"
    )


def _write(rack: CompiledRack) -> Iterator[str]:
    """The files of authors for the switch and for servers."""
    kinds = {(nf.place.kind, nf.kind) for nf in rack.routing.graph.nfs}
    for place, kind in sorted(kinds):
        if place is DeviceKind.SWITCH:
            module = BLOCKS[kind].__code__.co_filename
            yield Path(module).read_text(encoding="utf-8")
        elif place is DeviceKind.SERVER:
            for file in _of_function(kind):
                yield file.read_text(encoding="utf-8")


def _of_function(kind: str) -> list[Path]:
    """The C files of a function: the one that registers it, and those of its folder."""
    own = next((path for path in sorted(NF_FOLDER.glob("*.c")) if f'NF_KIND("{kind}"' in path.read_text("utf-8")), None)
    if own is None:
        return []
    return [own, *sorted((NF_FOLDER / own.stem).glob("**/*.[ch]"))]


def _lines(text: str) -> int:
    rows = (line.strip() for line in text.splitlines())
    return sum(bool(row) and not row.startswith(COMMENT_MARKS) for row in rows)
