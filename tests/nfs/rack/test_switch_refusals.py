"""What nf-switch refuses, and how it ends early."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.nfs.captures import read_capture, udp_packet, write_capture
from tests.nfs.rack.switch_program import COUNTING, PROGRAMS, TO_WORLD, run
from tests.nfs.rack.wire import FLUSH, SIDE_B, Wire

REFUSED = [
    # a program with two mistakes
    (
        {"p.spec": COUNTING.replace("m.place 3", "m.plaice 3").replace("tx 0", "send 0")},
        [
            'p.spec:48: "mov m.plaice 3": m.plaice: expected a field of a header or of the metadata',
            'p.spec:53: "send 0": is no instruction',
        ],
    ),
    # what only DPDK finds
    (
        {"p.spec": COUNTING.replace("mov m.place 3", "cksub h.eth.dst h.eth.type")},
        ['p.spec:48: "cksub h.eth.dst h.eth.type": DPDK refuses it'],
    ),
    (
        {"p.spec": COUNTING.replace("regadd reasons 2 t.n", "dma h.eth t.n")},
        ['p.spec:21: "dma h.eth t.n": DPDK refuses it'],
    ),
    # entries
    (
        {"entries": "nothing match 0 action count n 1\nclasses match 1 action count m 1\nclasses\n"},
        [
            "entries:1: nothing: is no table of the program",
            'entries:2: "match 1 action count m 1": is no entry of table classes',
            'entries:3: "classes": expected TABLE match|default|learner-default ... action ...',
        ],
    ),
    # entries that DPDK would take, changed
    (
        {
            "entries": "classes match 0x10800 action count n 1\nclasses match 0x0801/0xff00 action count n 1\n"
            "classes match 8/15 priority 1 action count n 1\nclasses match 0x8/0xf priority 1 action count n 2\n"
            "classes match 1 action count n 0x100000000\nalways default action count n -1\n"
        },
        [
            "entries:1: 0x10800: expected a number of 16 bits, or two with a /",
            "entries:2: 0x0801/0xff00: the value has bits that the mask has not",
            "entries:4: matches the same as line 3",
            "entries:5: n 0x100000000: expected a number of 32 bits",
            "entries:6: n -1: expected a number of 32 bits",
        ],
    ),
    # names
    (
        {"names": "function 4 f\nreason x y\n"},
        [
            "names:1: f: the program has no place 4 in its register arrays entered and sent",
            'names:2: "reason x y": expected function INDEX NAME, reason INDEX NAME, or rules INDEX NAME COUNT',
        ],
    ),
    ({"in.pcap": "no capture"}, ["in.pcap: "]),
    ({"s0.link": "no link"}, ["s0.link: is not a link"]),
]


@pytest.mark.parametrize(("files", "faults"), REFUSED)
def test_bad_input_is_refused_by_line(
    nf_switch: Path, tmp_path: Path, files: dict[str, str], faults: list[str]
) -> None:
    """Exit status 2, every fault with file and line; an output of an earlier run stays as it was."""
    (tmp_path / "p.spec").write_text(COUNTING)
    (tmp_path / "entries").write_text("")
    (tmp_path / "names").write_text("")
    (tmp_path / "out.pcap").write_text("earlier")
    write_capture(tmp_path / "in.pcap", [udp_packet()])
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    ends = ("--entries", "entries", "--names", "names", "--in", "in.pcap", "--out", "out.pcap", "--link", "s0=s0.link")
    done = run(nf_switch, "--spec", "p.spec", *ends, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    lines = [line for line in done.stderr.splitlines() if not line.startswith("hint: ")]
    assert len(lines) == len(faults), lines
    assert [line[: len(fault)] for line, fault in zip(lines, faults, strict=True)] == faults
    assert (tmp_path / "out.pcap").read_text() == "earlier"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--spec is needed"),
        (["--spec", "x"], "--in is needed"),
        (["--spec", "x", "--in", "x", "--out", "y", "--link", "s0"], '--link: "s0" is not NAME=FILE'),
        (["--spec", "x", "--link", "a=b", "--link", "a=c"], '--link: "a" is the name of another link'),
        (["--spec", "x", "--in-flight", "17"], '--in-flight: "17" is not a whole number from 1 to 16'),
        (["--spec", "none", "--check"], "none: No such file or directory"),
        (["--spec", "x", "--in", "x", "--out", "/dev/null"], '--out: "/dev/null" exists, and is not a file'),
        (["--spec", "x", "--in", "x", "--out", "y", "--report", "."], '--report: "." exists, and is not a file'),
        (["there"], "there: arguments are options"),
    ],
)
def test_bad_options_are_refused(nf_switch: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    """Exit status 2 and what is wrong."""
    done = run(nf_switch, *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def waiting(nf_switch: Path, folder: Path) -> subprocess.Popen[str]:
    """The switch with a server that is there, but does not answer the first flush."""
    write_capture(folder / "in.pcap", [udp_packet()] * 3)
    (folder / "entries").write_text(TO_WORLD)
    ends = [
        "--entries",
        "entries",
        "--in",
        "in.pcap",
        "--out",
        "out.pcap",
        "--report",
        "report",
        "--link",
        "s0=s0.link",
    ]
    command = [nf_switch, "--spec", PROGRAMS / "l2.spec", *ends]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)


def test_interrupted_it_keeps_what_was_done(nf_switch: Path, tmp_path: Path) -> None:
    """Ctrl-C ends the waiting: exit status 130, packets and report are whole."""
    with Wire(tmp_path / "s0.link", SIDE_B) as link:
        process = waiting(nf_switch, tmp_path)
        assert link.wait(60).kind == FLUSH
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[1] == ""
    assert process.returncode == 130
    assert len(read_capture(tmp_path / "out.pcap")) == 3
    assert json.loads((tmp_path / "report").read_text())["interrupted"] is True


def test_it_ends_when_a_server_leaves(nf_switch: Path, tmp_path: Path) -> None:
    """A server that ends before the switch makes it fail with a message, and without output."""
    with Wire(tmp_path / "s0.link", SIDE_B) as link:
        process = waiting(nf_switch, tmp_path)
        assert link.wait(60).kind == FLUSH
    message = process.communicate(timeout=60)[1]
    assert (process.returncode, message) == (1, "s0.link: the process at the other end has left\n")
    assert not list(tmp_path.glob("out*")) and not list(tmp_path.glob("report*"))
