"""Match: sorts packets by expressions. The edges behind it have them: the NF itself passes all."""

import re
from collections.abc import Callable, Mapping, Sequence

from placer.rack.compiler.library.given_data import DataParameter, GivenData
from placer.rack.compiler.library.nf_kind import NF_KINDS, NoData
from placer.rack.compiler.traffic.entries import ExpressionError, parse
from profiles.files.table_lines import TableForm, TableLine, WordError

MOST_WORDS = 10_000  # in an expression
MOST_EXPRESSIONS = 10_000  # in a file
EXPRESSION_FORM = 'a traffic expression a line, as `src net 10.0.0.0/8 and udp port 53`; branches name them as "@1"'
EXPRESSION_NAME = re.compile(r"@([0-9]+)\b")


class MatchNf(NoData):
    """The NF whose edges have matches."""

    name = "Match"
    own = (
        DataParameter(
            "filters", "a file of expressions, which branches name as @1", lambda given: read_expressions(given)
        ),
    )
    platforms = frozenset(("server", "switch", "smartnic"))

    def server_settings(self, parameters: Mapping[str, float], files: Mapping[str, str]) -> dict[str, str]:
        """Those of a Match that passes all."""
        return {"filters": "len>=0", "drop_unmatched": "1"}


def read_expressions(given: GivenData) -> tuple[str, ...]:
    """The traffic expressions of a file. Raises InputError with every fault."""
    return given.table(TableForm(_expression_of_line, EXPRESSION_FORM, "expressions", MOST_EXPRESSIONS, MOST_WORDS))


def _expression_of_line(line: TableLine) -> str:
    text = line.rest
    try:
        parse(text)
    except ExpressionError as error:
        raise WordError(line.words[0].at + error.at, error.message) from None
    return text


def name_expressions(match: str, expressions: Sequence[str], refuse: Callable[[str], None]) -> str:
    """The match of a branch with expressions in place of their names: `@2, not @1`. `refuse`: is called with what is
    wrong where a name names none."""

    def expression(found: re.Match[str]) -> str:
        number = found[1].lstrip("0")
        if len(number) > len(str(MOST_EXPRESSIONS)) or not 1 <= int(number or 0) <= len(expressions):
            refuse(f'the branch "{match}" names expression {found[1][:20]}, of {len(expressions)}')
            return "other"
        text = expressions[int(number) - 1]
        return text if found[0] == match else f"({text})"

    return EXPRESSION_NAME.sub(expression, match)


NF_KINDS.register(MatchNf.name)(MatchNf())
