"""Writes the program of a SmartNIC in C: one file that needs nothing but the headers of Linux and libbpf.

Each step is a function that processes the packet and returns what is next; the main function takes the label off, runs
the steps in order, each if it is next, and puts the label of the next platform on.
"""

import re
import zlib
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TypedDict

from placer.rack.compiler.ebpf.program import NicEdge, NicEntry, NicExit, NicProgram, NicSide, NicStep
from placer.rack.compiler.routing import BURST_S, Label
from placer.rack.compiler.traffic.expression import (
    And,
    End,
    Everything,
    Expression,
    HasAddress,
    HasPort,
    HasProtocol,
    HasTag,
    IsIp,
    Not,
    Or,
)

SNIPPET_FOLDER = Path(__file__).resolve().parents[4] / "nfs" / "xdp"
OWN_INCLUDE = re.compile(r'^#include "xdp/(\w+\.h)"\n', re.MULTILINE)
SYSTEM_INCLUDE = re.compile(r"^#include <.*>\n", re.MULTILINE)
PRAGMA_ONCE = re.compile(r"^#pragma once\n", re.MULTILINE)
XDP_ACTIONS = {NicSide.SWITCH: "XDP_TX", NicSide.HOST: "XDP_PASS"}
DROP_REASONS = ("unknown_path", "unmatched", "no_room")
RATE_LIMIT = "rate_limit"  # the reason of programs that keep rates
METER_UNITS = 16  # of a ns (nfs/xdp/meter.h)
HASH_VALUES = 1 << 16
COUNT_RULES = "COUNT_RULES"  # what is defined in builds that count how often each rule decided
COUNTING_SNIPPETS = ("acl.h", "ipv4_fwd.h")


class FunctionNames(TypedDict):
    """The places of an NF's counters; those of a way behind one are the same."""

    name: str
    entered: int
    sent: int


class NicNames(TypedDict):
    """What the counters of a program count, by their places; an NF dropped what entered and was not sent."""

    functions: list[FunctionNames]
    reasons: dict[str, int]


def names_of(program: NicProgram) -> NicNames:
    """The counters of a program."""
    functions: list[FunctionNames] = [
        {"name": step.name, "entered": 2 * at, "sent": 2 * at + 1} for at, step in enumerate(program.steps)
    ]
    first = 2 * len(functions)
    counters = [edge.counter for step in program.steps for edge in step.edges if edge.counter]
    functions += [{"name": name, "entered": at, "sent": at} for at, name in enumerate(counters, first)]
    first += len(counters)
    return {"functions": functions, "reasons": {reason: at for at, reason in enumerate(_reasons(program), first)}}


def _reasons(program: NicProgram) -> Sequence[str]:
    return (*DROP_REASONS, RATE_LIMIT) if program.limited else DROP_REASONS


def source_of(program: NicProgram) -> str:
    """The program in C. Raises InputError with every fault of the program, and what its NFs cannot do on the card."""
    program.check()
    identifiers = program.identifiers()
    snippets = ["packet.h", "fields.h", "split.h", "nsh.h", *(step.function.snippet for step in program.steps)]
    snippets += ["meter.h"] if program.limited else []
    includes, code = _inline(snippets)
    parts = [
        f"/* The program of SmartNIC {program.name}, which XDP emulates: generated from a plan. */\n",
        includes,
        _rules(program, identifiers),
        code,
        _counters(program),
        _places(program, identifiers),
        *(_step(program, at, identifiers) for at in range(len(program.steps))),
        _way_in(program, identifiers),
        _way_out(program),
        _main(program, identifiers),
    ]
    return "\n".join(part for part in parts if part)


def _inline(snippets: Sequence[str]) -> tuple[str, str]:
    """The system headers of snippets, and their code, each once, behind what it needs."""
    system: dict[str, None] = {}
    code: dict[str, str] = {}

    def add(name: str) -> None:
        if name in code:
            return
        text = (SNIPPET_FOLDER / name).read_text(encoding="utf-8")
        for needed in OWN_INCLUDE.findall(text):
            add(needed)
        system.update(dict.fromkeys(SYSTEM_INCLUDE.findall(text)))
        text = PRAGMA_ONCE.sub("", SYSTEM_INCLUDE.sub("", OWN_INCLUDE.sub("", text)))
        code[name] = re.sub(r"\n{3,}", "\n\n", f"/* xdp/{name} */\n{text}").rstrip() + "\n"

    for name in snippets:
        add(name)
    return "".join(sorted(system, key=lambda line: (not line.startswith("#include <linux/bpf.h"), line))), "\n".join(
        code.values()
    )


def _rules(program: NicProgram, identifiers: Sequence[str]) -> str:
    """Where rules are counted, in a build that is to: the card has no room for that."""
    places, total = [], 0
    for step, name in zip(program.steps, identifiers, strict=True):
        if step.function.rules:
            places.append(f"#define {name}_RULES {total}\n")
            total += step.function.rules
    if not any(step.function.snippet in COUNTING_SNIPPETS for step in program.steps):
        return ""
    return f"""/* How often each rule decided, in a build for those who ask. */
{"".join(places)}#ifdef {COUNT_RULES}
__u64 rule_counts[{max(total, 1)}] SEC(".bss.rules");
#define COUNT_RULE(place) __sync_fetch_and_add(&rule_counts[place], 1)
#else
#define COUNT_RULE(place) (void)(place)
#endif
"""


def _counters(program: NicProgram) -> str:
    names = names_of(program)
    lines = [
        f"{kind} {function[kind]} {function['name']}" for function in names["functions"] for kind in ("entered", "sent")
    ]
    lines += [f"reason {place} {name}" for name, place in names["reasons"].items()]
    quoted = _quote(lines)
    rules, total_rules = [], 0
    for step in program.steps:
        if step.function.rules:
            rules.append(f"rules {total_rules} {step.function.rules} {step.name}")
            total_rules += step.function.rules
    if rules:
        quoted += f"\n#ifdef {COUNT_RULES}\n{_quote(rules)}\n#endif\n"
    total = max(names["reasons"].values()) + 1
    return f"""/* What counters count, for those who read them. */
const char names[] SEC(".rodata.names") =
{quoted};

__u64 counters[{total}];

static __always_inline void count(__u32 place)
{{
	__sync_fetch_and_add(&counters[place], 1);
}}
"""


def _quote(lines: Sequence[str]) -> str:
    return "\n".join(f'\t"{_escape(line)}\\n"' for line in lines)


def _places(program: NicProgram, identifiers: Sequence[str]) -> str:
    """The steps and exits as numbers; the first is for packets that are dropped."""
    names = ["DROPPED", *map(_next, identifiers), *(_exit_name(at) for at in range(len(program.exits())))]
    return "/* What is next for a packet. */\nenum {\n" + "".join(f"\t{name},\n" for name in names) + "};\n"


def _next(name: str) -> str:
    return f"NEXT_{name}"


def _escape(text: str) -> str:
    """Text within a string of C."""
    return "".join(f"\\{ord(char):03o}" if char in '"\\' or char < " " else char for char in text)


def _exit_name(at: int) -> str:
    return f"EXIT_{at}"


def _place(program: NicProgram, identifiers: Sequence[str], to: int | NicExit) -> str:
    return _next(identifiers[to]) if isinstance(to, int) else _exit_name(list(program.exits()).index(to))


def _step(program: NicProgram, at: int, identifiers: Sequence[str]) -> str:
    step, name, names = program.steps[at], identifiers[at], names_of(program)
    counters = names["functions"][at]
    behind = "".join(f"\t{line}".rstrip() + "\n" for line in _branch(program, step, identifiers, names))
    return f"""/* {step.name.replace("*/", "* /")} */
{step.function.tables(name)}
static __always_inline __u32 {name}(struct xdp_md *ctx)
{{
	count({counters["entered"]});
	if (!{step.function.call(name)})
		return DROPPED;
	count({counters["sent"]});
{behind}}}
"""


def _branch(program: NicProgram, step: NicStep, identifiers: Sequence[str], names: NicNames) -> Iterator[str]:
    """What chooses among the edges of a step."""
    counters = {function["name"]: function["sent"] for function in names["functions"]}

    def take(edge: NicEdge, condition: str = "") -> Iterator[str]:
        indent = "\t" if condition else ""
        counted = [f"{indent}count({counters[edge.counter]});"] if edge.counter else []
        if condition:
            yield f"if ({condition}) {{" if counted else f"if ({condition})"
        yield from counted
        yield f"{indent}return {_place(program, identifiers, edge.to)};"
        if condition and counted:
            yield "}"

    matched = [edge for edge in step.edges if edge.match is not None]
    shared = [edge for edge in step.edges if edge.match is None]
    if matched or len(shared) > 1:
        yield "const struct headers headers = read_headers(ctx);"
    if matched:
        yield "const struct fields fields = fields_of(&headers);"
    if len(shared) > 1:
        yield f"const __u32 hash = split_hash(&headers, {zlib.crc32(step.name.encode()):#010x});"
    if matched or len(shared) > 1:
        yield ""
    for edge in matched:
        assert edge.match is not None
        yield from take(edge, condition_of(edge.match))
    for edge, limit in zip(shared, hash_limits(shared), strict=True):
        yield from take(edge, f"hash < {limit}" if limit < HASH_VALUES else "")
        if limit == HASH_VALUES:
            return
    yield f"count({names['reasons']['unmatched']});"
    yield "return DROPPED;"


def hash_limits(edges: Sequence[NicEdge]) -> list[int]:
    """Below which split hash each edge without a match is chosen, unless an earlier one is; the last is 65,536."""
    total = sum((edge.share for edge in edges), Fraction(0))
    limits, passed = [], Fraction(0)
    for edge in edges:
        passed += edge.share
        limits.append(int(HASH_VALUES * passed / total))
    return limits


def _way_in(program: NicProgram, identifiers: Sequence[str]) -> str:
    cases = "".join(
        f"\tcase {entry.label.word:#x}: /* {entry.label} */\n\t\treturn {_next(identifiers[entry.step])};\n"
        for entry in program.entries
    )
    return f"""/* The step at which a packet enters; DROPPED if there is none. */
static __always_inline __u32 step_of(__u32 label)
{{
	switch (label) {{
{cases}	default:
		return DROPPED;
	}}
}}

/* Packets of others pass, or are dropped. */
static __always_inline int pass(struct xdp_md *ctx, __u32 label)
{{
{_passing(program)}	count({names_of(program)["reasons"]["unknown_path"]});
	return XDP_DROP;
}}
"""


def _passing(program: NicProgram) -> str:
    lines = []
    for exit_ in program.passing:
        if exit_.label is None:
            lines.append(f"\tif (label == 0 && nsh_absent(ctx))\n\t\treturn {XDP_ACTIONS[exit_.to]};\n")
        else:
            lines.append(f"\tif (label == {exit_.label.word:#x})\n\t\treturn {XDP_ACTIONS[exit_.to]};\n")
    return "".join(lines) or "\t(void)ctx;\n\t(void)label;\n"


def _way_out(program: NicProgram) -> str:
    exits = program.exits()
    if not exits:
        return ""
    cases = "".join(
        f"\tcase {_exit_name(at)}:\n\t\tlabel = {_word(exit_.label)};\n"
        f"\t\taction = {XDP_ACTIONS[exit_.to]};\n\t\tbreak;\n"
        for at, exit_ in enumerate(exits)
    )
    return f"""/* Put on the label of what is next elsewhere; 0: the packet leaves the rack without one. */
static __always_inline int leave(struct xdp_md *ctx, __u32 next)
{{
	__u32 label;
	int action;

	switch (next) {{
{cases}	default:
		return XDP_DROP;
	}}
	if (label == 0 || nsh_push(ctx, label))
		return action;
	count({names_of(program)["reasons"]["no_room"]});
	return XDP_DROP;
}}
"""


def _word(label: Label | None) -> str:
    return "0" if label is None else f"{label.word:#x}"


def _main(program: NicProgram, identifiers: Sequence[str]) -> str:
    meters = "".join(_meter(entry, at, identifiers[entry.step], program) for at, entry in enumerate(program.limited))
    of_meters = f'\n__u64 meters[{len(program.limited)}] SEC(".data.meters");\n\n' if meters else ""
    runs = "".join(f"\tif (next == {_next(name)})\n\t\tnext = {name}(ctx);\n" for name in identifiers)
    end = "return leave(ctx, next)" if program.exits() else "return XDP_DROP"
    return f"""{of_meters}SEC("xdp") int nic(struct xdp_md *ctx)
{{
	const __u32 label = nsh_label(ctx);
	__u32 next = step_of(label);

	if (next == DROPPED)
		return pass(ctx, label);
	if (!nsh_pop(ctx))
		return XDP_DROP;
{meters}{runs}	{end};
}}

char _license[] SEC("license") = "Apache-2.0";
"""


def _meter(entry: NicEntry, at: int, step: str, program: NicProgram) -> str:
    """What drops packets of a chain above its rate."""
    assert entry.rate_mbps is not None
    cost = round(8000 * METER_UNITS / entry.rate_mbps)
    burst = round(BURST_S * 1e9) * METER_UNITS
    return f"""\tif (next == {_next(step)} && !meter_admits(ctx, &meters[{at}], {cost}, {burst})) {{
\t\tcount({names_of(program)["reasons"][RATE_LIMIT]});
\t\treturn XDP_DROP;
\t}}
"""


# Traffic expressions as conditions in C over `struct fields` (nfs/xdp/fields.h).


END_NAMES = {End.SOURCE: ("source",), End.DESTINATION: ("destination",), End.EITHER: ("source", "destination")}


def condition_of(expression: Expression) -> str:
    """The condition, in parentheses where it has several parts."""
    match expression:
        case Everything():
            return "true"
        case IsIp():
            return "fields.ip"
        case HasTag(None):
            return "fields.tagged"
        case HasTag(vlan):
            return f"(fields.tagged && fields.vlan == {vlan})"
        case HasProtocol(protocol):
            return f"(fields.ip && fields.protocol == {protocol})"
        case HasAddress(end, prefix, _):
            tests = [f"(fields.{name} & {expression.mask:#x}) == {prefix:#x}" for name in END_NAMES[end]]
            return f"(fields.ip && ({' || '.join(tests)}))"
        case HasPort(end, low, high):
            return f"(fields.has_ports && ({' || '.join(_port(name, low, high) for name in END_NAMES[end])}))"
        case Not(of):
            return f"!{condition_of(of)}"
        case And(parts):
            return f"({' && '.join(map(condition_of, parts))})"
        case Or(parts):
            return f"({' || '.join(map(condition_of, parts))})"


def _port(name: str, low: int, high: int) -> str:
    field = f"fields.{name}_port"
    return f"{field} == {low}" if low == high else f"({field} >= {low} && {field} <= {high})"
