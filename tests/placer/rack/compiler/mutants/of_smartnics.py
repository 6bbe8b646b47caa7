"""Faults of the programs of SmartNICs."""

import re
import types
import zlib
from dataclasses import replace
from typing import Any

from placer.rack.compiler import compile as compiler
from placer.rack.compiler.ebpf import source
from placer.rack.compiler.ebpf.program import NicEdge, NicExit, NicProgram, NicSide
from placer.rack.compiler.routing import Label
from tests.placer.rack.compiler.mutants.mutant import Mutant, Patch, replaced, wrapped
from tests.reference import emulate

OTHER_SIDE = {NicSide.SWITCH: NicSide.HOST, NicSide.HOST: NicSide.SWITCH}


def _in_program(change: Any) -> Patch:
    """The program of a SmartNIC is changed before it is written."""
    return wrapped(compiler, "nic_program", lambda program, *_: change(program))


def _in_source(change: Any) -> Patch:
    return wrapped(emulate, "source_of", lambda text, program: change(text))


def _with_edges(program: NicProgram, change: Any) -> NicProgram:
    steps = tuple(replace(step, edges=tuple(change(step.edges))) for step in program.steps)
    return replace(program, steps=steps)


def _exits_changed(change: Any) -> Patch:
    def edges(of: tuple[NicEdge, ...]) -> list[NicEdge]:
        return [replace(one, to=change(one.to)) if isinstance(one.to, NicExit) else one for one in of]

    return _in_program(lambda program: _with_edges(program, edges))


def _index_lower(one: NicExit) -> NicExit:
    assert one.label is not None
    return NicExit(one.to, Label(one.label.path, one.label.index - 1))


def _matches_turned(edges: tuple[NicEdge, ...]) -> list[NicEdge]:
    return [replace(one, to=other.to) for one, other in zip(edges, edges[::-1], strict=True)]


def _without_passing(side: NicSide) -> Patch:
    return _in_program(
        lambda program: replace(program, passing=tuple(one for one in program.passing if one.to is not side))
    )


def _names_swapped(names: Any, program: NicProgram) -> Any:
    swapped = [{**one, "entered": one["sent"], "sent": one["entered"]} for one in names["functions"]]
    return {**names, "functions": swapped}


MUTANTS = (
    Mutant("a SmartNIC writes a service index that is one too low", _exits_changed(_index_lower)),
    Mutant("a SmartNIC confuses switch and host", _exits_changed(lambda one: NicExit(OTHER_SIDE[one.to], one.label))),
    Mutant("a SmartNIC writes no label", _exits_changed(lambda one: NicExit(one.to, None))),
    Mutant(
        "a SmartNIC keeps the label that a packet came with",
        _in_source(lambda text: text.replace("if (!nsh_pop(ctx))\n\t\treturn XDP_DROP;", "")),
    ),
    Mutant("a SmartNIC lets nothing pass to the host", _without_passing(NicSide.HOST)),
    Mutant("a SmartNIC lets nothing pass to the switch", _without_passing(NicSide.SWITCH)),
    Mutant(
        "ways behind an NF of a SmartNIC are swapped",
        _in_program(lambda program: _with_edges(program, _matches_turned)),
    ),
    Mutant(
        "splits of a SmartNIC have another salt",
        replaced(source, "zlib", types.SimpleNamespace(crc32=lambda data: zlib.crc32(data) ^ 1)),
    ),
    Mutant(
        "limits of a SmartNIC's splits are halved",
        wrapped(source, "hash_limits", lambda limits, edges: [one // 2 if one < 65536 else one for one in limits]),
    ),
    Mutant(
        "conditions of a SmartNIC are turned round", wrapped(source, "condition_of", lambda text, one: f"!({text})")
    ),
    Mutant(
        "packets enter a SmartNIC behind the NF that is next",
        _in_program(
            lambda program: replace(
                program,
                entries=tuple(replace(one, step=(one.step + 1) % len(program.steps)) for one in program.entries),
            )
        ),
    ),
    Mutant("a SmartNIC counts what left as what entered", wrapped(source, "names_of", _names_swapped)),
    Mutant(
        "what an NF of a SmartNIC dropped goes on",
        _in_source(lambda text: re.sub(r"if \(!(\w+\(ctx[^\n]*\))\)\n\t\treturn DROPPED;", r"\1;", text)),
    ),
)
