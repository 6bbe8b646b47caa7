"""Where the keys of a TOML file stand."""

from __future__ import annotations

from profiles.files.toml import TomlLines

TEXT = """top = 1
[a]
b = 2
"c d".e = {f = 3}
[[server]]
name = "x"
[server.nic]
cores = 1
[[server]]
  name = "y"   # = z
[ nf . ACL ]
cycles = [
  1,
]
"""


def test_each_key_has_its_line() -> None:
    lines = TomlLines(TEXT)
    assert [lines.of(path) for path in (["top"], ["a"], ["a", "b"])] == [1, 2, 3]
    assert lines.of(["server", 0, "name"]) == 6 and lines.of(["server", 1, "name"]) == 10
    assert lines.of(["server", 0, "nic", "cores"]) == 8
    assert lines.of(["nf", "ACL", "cycles"]) == 12


def test_what_is_not_there_has_the_line_of_the_table_around_it() -> None:
    lines = TomlLines(TEXT)
    assert lines.of(["a", "c d", "e", "f"]) == 4
    assert lines.of(["server", 1, "cores"]) == 9
    assert lines.of(["nf", "ACL", "cycles", 0]) == 12
    assert lines.of(["missing", "key"]) is None
