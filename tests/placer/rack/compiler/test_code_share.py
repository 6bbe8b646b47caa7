"""How much of a rack's code is generated."""

from __future__ import annotations

from placer.rack.compiler.code_share import CodeShare, code_share, share_text
from placer.rack.compiler.compile import compile_rack
from tests.placer.rack.compiler.random_racks import random_plan


def test_lines_are_counted_by_who_wrote_them() -> None:
    """Steering is a part of what is generated, and all NFs of a rack have an author."""
    share = code_share(compile_rack(random_plan(3), "plan"))
    assert share is not None
    assert 0 < share.steering <= share.generated
    assert share.written > 0


def test_the_published_share_stands_beside() -> None:
    """A quarter of 400 lines; Lemur's are named."""
    text = share_text(CodeShare(100, 60, 300))
    assert text.startswith("100 lines generated, 60 of them steer packets on the switch; NF authors wrote 300: 25 %")
    assert "820 of 1700" in text
