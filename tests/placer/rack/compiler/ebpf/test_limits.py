"""What violates a limit of the card is refused, with the limit and the NFs that take most of it."""

from dataclasses import replace
from fractions import Fraction

import pytest

from placer.rack.compiler.ebpf import limits
from placer.rack.compiler.ebpf.functions import NicAcl, NicFastEncrypt, NicIpv4Fwd, NicLb, NicTunnel
from placer.rack.compiler.ebpf.limits import (
    ObjectError,
    StackLimitError,
    build,
    compile_source,
    read_object,
    use_of,
    violations,
)
from placer.rack.compiler.ebpf.program import NicEdge, NicEntry, NicExit, NicPassing, NicProgram, NicSide, NicStep
from placer.rack.compiler.ebpf.source import source_of
from placer.rack.compiler.library.acl import AclFilter
from placer.rack.compiler.library.ipv4_fwd import Route
from placer.rack.compiler.library.lb import Backends
from placer.rack.compiler.library.prefixes import ANY_PREFIX
from placer.rack.compiler.routing import Label
from profiles import InputError
from tests.placer.rack.compiler.ebpf.programs import IN, OUT, require_clang

EXIT = NicExit(NicSide.SWITCH, OUT)
HEAD = """#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
volatile __u32 seen;
"""


def program(body: str, before: str = "") -> bytes:
    """A program of XDP with a body, which returns `found`."""
    require_clang()
    return compile_source(
        f'{HEAD}{before}\nSEC("xdp") int nic(struct xdp_md *ctx)\n{{\n\t__u64 found = 0;\n{body}\n\treturn found;\n}}\n'
    )


JUMPS = "".join(f"\tif (seen == {at}) goto out;\n\tfound += seen;\n" for at in range(3))


@pytest.mark.parametrize(
    ("body", "before", "limits"),
    [
        ("\tfound = ctx->data;", "", []),
        ("\tseen = 1;\n" * 5000, "", ["instructions"]),  # each line is a write
        (  # a loop whose end is not known stays one
            "#pragma clang loop unroll(disable)\n\tfor (__u32 i = 0; i < ctx->data; i++)\n\t\tfound += seen;",
            "",
            ["loop"],
        ),
        # a jump backwards that closes no loop is none: clang puts shared code before its users
        (f"\tgoto in;\nout:\n\treturn seen;\nin:\n{JUMPS}", "", []),
        # the card has few of the kernel's helpers; the clock is none of them
        ("\tfound = bpf_ktime_get_ns();", "", ["helper"]),
        # a function that is not inlined
        (
            "\tfound = other(ctx->data) + other(ctx->data_end);",
            "static __attribute__((noinline)) __u64 other(__u64 value) { return value * seen; }",
            ["calls"],
        ),
    ],
    ids=["fits", "instructions", "loop", "backwards", "helper", "call"],
)
def test_what_violates_a_limit_is_found(body: str, before: str, limits: list[str]) -> None:
    assert [what for what, _ in violations(read_object(program(body, before)))] == limits


def test_too_much_stack() -> None:
    """520 bytes that must be kept: clang itself refuses that for BPF."""
    kept = "\tvolatile __u64 kept[65];\n" + "".join(f"\tkept[{at}] = seen;\n" for at in range(65))
    with pytest.raises(StackLimitError):
        program(f"{kept}\tfound = kept[3];")


def test_too_much_stack_in_an_object() -> None:
    """An object from elsewhere: its first write is moved to 520 bytes below."""
    found = read_object(program("\tvolatile __u64 kept = seen;\n\tfound = kept;"))
    at = next(at for at, one in enumerate(found.code) if one.opcode & 7 == 3)
    code = [*found.code[:at], found.code[at]._replace(offset=-520), *found.code[at + 1 :]]
    assert [what for what, _ in violations(replace(found, code=code))] == ["stack"]


def test_a_program_that_needs_too_much_stack_is_refused_with_its_nfs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal names the NF."""

    def refuse(_: str) -> bytes:
        raise StackLimitError

    monkeypatch.setattr(limits, "compile_source", refuse)
    with pytest.raises(InputError, match="more than 512 bytes of stack") as refused:
        build(one_step(NicTunnel()))
    assert "c0/f0 more than 512 B" in str(refused.value)


def test_stack_is_counted() -> None:
    """Twenty words of 8 bytes take 160."""
    body = (
        "\tvolatile __u64 kept[20];\n" + "".join(f"\tkept[{at}] = seen;\n" for at in range(20)) + "\tfound = kept[3];"
    )
    assert use_of(read_object(program(body))).stack == 160


def one_step(function: object) -> NicProgram:
    """A program of one NF."""
    return NicProgram("n0", (NicStep("c0/f0", function, (NicEdge(EXIT),)),), (NicEntry(IN, 0),))  # type: ignore[arg-type]


def test_two_blocks_of_chacha20_do_not_fit() -> None:
    """One does; the refusal says how much the NF takes."""
    require_clang()
    assert 3000 < build(one_step(NicFastEncrypt(blocks=1)))[1].instructions <= 4196
    with pytest.raises(InputError) as refused:
        build(one_step(NicFastEncrypt(blocks=2)))
    assert "instructions, at most 4,196" in str(refused.value)
    assert "c0/f0" in str(refused.value)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (one_step(NicFastEncrypt(blocks=0)), "does not fit the card"),
        (one_step(NicFastEncrypt(key=b"short")), "the key has 5 bytes"),
        (
            one_step(NicAcl((AclFilter(True, 0, ANY_PREFIX, (0, 1), ANY_PREFIX, (0, 1)),) * 700)),
            "700 filters do not fit the card",
        ),
        (one_step(NicIpv4Fwd((Route(ANY_PREFIX, 1),) * 1399)), "1399 routes do not fit the card"),
        (one_step(NicIpv4Fwd((Route(ANY_PREFIX, 256),))), "next hop 256 of 0.0.0.0/0"),
        (one_step(NicTunnel(4095)), "vlan is 4095"),
        (one_step(NicLb(Backends((1,), (0, 0, 0), 1, 0))), "table has 3 entries"),
        (NicProgram("n0", (NicStep("c0/f0", NicTunnel(), ()),)), "has no edge"),
        (NicProgram("n0", (NicStep("c0/f0", NicTunnel(), (NicEdge(0),)),)), "leads back to step 0"),
        (NicProgram("n0", (NicStep("c0/f0", NicTunnel(), (NicEdge(EXIT, share=Fraction(0)),)),)), "has the share 0"),
        (NicProgram("n0", (), (NicEntry(IN, 0),)), "enters at step 0 of 0"),
        (NicProgram("n0", (), (), (NicPassing(IN, NicSide.HOST), NicPassing(IN, NicSide.SWITCH))), "enters 2 times"),
        (NicProgram("n0", (), (), (NicPassing(Label(0, 1), NicSide.HOST),)), "is no label"),
        (NicProgram("n0", (), (), (NicPassing(Label(1 << 24, 1), NicSide.HOST),)), "is no label"),
    ],
)
def test_programs_that_cannot_be_written_are_refused(made: NicProgram, message: str) -> None:
    """Before clang sees them."""
    with pytest.raises(InputError, match=message):
        source_of(made)


def test_damaged_objects_are_refused() -> None:
    """Cut off anywhere, or of another kind: never a fault of the reader."""
    data = program("\tfound = seen;")
    for length in range(0, len(data), 7):
        with pytest.raises(ObjectError):
            read_object(data[:length])
    with pytest.raises(ObjectError, match="no ELF file for BPF"):
        read_object(data[:18] + b"\x3e\x00" + data[20:])
