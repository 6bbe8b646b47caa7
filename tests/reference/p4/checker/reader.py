"""The text of an emitted P4 program to its tree, by a grammar that has what the compiler writes, and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from placer.rack.compiler.p4.bodies import ALSO_NAMES, P4_KEYWORDS

GRAMMAR = """
P4Program: '#include <core.p4>' '#include <pna.p4>' header_types=HeaderTypeDeclaration*
  struct headers_t { headers=HeaderDeclaration* } struct metadata_t { metadata=BitField* }
  parser MainParser ( packet_in packet , out headers_t hdr , inout metadata_t meta ,
    in pna_main_parser_input_metadata_t istd ) { states=StateDeclaration* }
  control PreControl ( in headers_t hdr , inout metadata_t meta , in pna_pre_input_metadata_t istd ,
    inout pna_pre_output_metadata_t ostd ) { apply { } }
  control MainControl ( inout headers_t hdr , inout metadata_t meta , in pna_main_input_metadata_t istd ,
    inout pna_main_output_metadata_t ostd ) { registers=RegisterDeclaration*
    meters=MeterDeclaration* actions=ActionDeclaration* tables=TableDeclaration* apply { body=Statement* } }
  control MainDeparser ( packet_out packet , in headers_t hdr , in metadata_t meta ,
    in pna_main_output_metadata_t ostd ) { apply { emits=HeaderEmit* } }
  PNA_NIC ( MainParser ( ) , PreControl ( ) , MainControl ( ) , MainDeparser ( ) ) main ; END

HeaderTypeDeclaration: header ^ name=NAME { fields=HeaderField* }
HeaderField: word=bit < width=NUMBER > ^ name=NAME ; | word=varbit < width=NUMBER > ^ name=NAME ;
BitField: word=bit < width=NUMBER > ^ name=NAME ;
HeaderDeclaration: type=NAME name=NAME ;

StateDeclaration: state ^ name=NAME { [ extract=HeaderExtract ] transition
  [! select ( keys=Expression,+ ) { cases=SelectCase+ default : otherwise=NAME ; } | otherwise=NAME ; ] }
HeaderExtract: packet . extract ( hdr . header=NAME [ , length=Expression ] ) ;
SelectCase: ( values=ValueSet,+ ) : state=NAME ; | values=ValueSet! : state=NAME ;
ValueSet: any=_ | value=NUMBER [ &&& mask=NUMBER ]

RegisterDeclaration: Register < bit < 64 > , bit < 32 >> ( size=NumberLiteral , first=NumberLiteral ) ^ name=NAME ;
MeterDeclaration: Meter < bit < 32 >> ( size=NumberLiteral , PNA_MeterType_t . BYTES ) ^ name=NAME ;
ActionDeclaration: action ^ name=NAME ( [ parameters=Parameter,+ ] ) { body=Statement* }
Parameter: word=bit < width=NUMBER > ^ name=NAME
TableDeclaration: [ @ mutually_exclusive ( exclusive=TableName,+ ) ] table ^ name=NAME {
  [ key = { key=KeyElement* } ] actions = { actions=ListedAction* } const default_action = default=ActionCall ;
  [ learns=add_on_miss = true ; idle_timeout_with_auto_delete = true ;
    default_idle_timeout_for_data_plane_added_entries = 1 ; | const entries = { entries=TableEntry* } ]
  size = size=NumberLiteral ; }
TableName: name=TEXT
KeyElement: field=PathUse : match_kind=NAME ;
ListedAction: [ @ [! note=tableonly | note=defaultonly ] ] ^ name=NAME ;
ActionCall: name=NAME ( [ arguments=NumberLiteral,+ ] )
TableEntry: ( values=ValueSet,+ ) : action=ActionCall ; | values=ValueSet! : action=ActionCall ;
HeaderEmit: packet . emit ( hdr . header=NAME ) ;

Statement: IfStatement | Assignment | PacketDrop | PacketSend | EntryLearning | TableApply | ValidityChange
  | RegisterWrite
IfStatement: if ( condition=Expression ) { yes=Statement* } [ else no=IfStatement! | else { no=Statement* } ]
Assignment: target=PathUse = value=Expression ;
PacketDrop: drop_packet ( ) ;
PacketSend: send_to_port ( ( PortId_t ) port=PathUse ) ;
EntryLearning: add_entry ( action_name = action=TEXT , action_params = { values=Expression,+ } ,
  expire_time_profile_id = ( ExpireTimeProfileId_t ) 1 ) ;
TableApply: table=NAME . apply ( ) ;
ValidityChange: hdr . header=NAME . [! valid=setValid | valid=setInvalid ] ( ) ;
RegisterWrite: register=NAME . write ( index=Expression , value=Expression ) ;

Expression: MeterUse | BinaryUse | Operand
MeterUse: meter=NAME . execute ( index=NumberLiteral ) == PNA_MeterColor_t . RED
BinaryUse: left=Operand ^ sign=SIGN right=Operand
Operand: NumberLiteral | CastUse | Parenthesis | ValidityUse | RegisterRead | LookaheadUse | PathUse
NumberLiteral: value=NUMBER
CastUse: ( bit < width=NUMBER > ) operand=Operand
Parenthesis: ( Expression )
ValidityUse: hdr . header=NAME . isValid ( )
RegisterRead: register=NAME . read ( index=Expression )
LookaheadUse: packet . lookahead < type=NAME > ( ) . field=NAME
PathUse: path=PATH
"""
"""A node for each construct: `RULE: alternatives`, with blanks between words.

`field=RULE` is a part of the node; behind the rule, `*` stands for any number, `+` for one or more, `,+` for one or
more between commas, and `!` for a tuple of one. Words in capitals are kinds of tokens, all others stand in the text,
and `field=word` notes that a word is there. `[ ]` may be left out, `[! ]` may not, and `^` is where the node is said to
be. A rule that stands alone is taken in place of the node around it.
"""
SIGNS = frozenset(("+", "-", "&", "|", "^", "<<", ">>", "==", "!=", "<", ">"))
TOKEN_PATTERN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*)
    |(?P<include>\#include\ <[^>\n]*>)
    |(?P<number>[0-9][0-9A-Za-z_]*)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<text>"[^"\n]*")
    |(?P<sign>&&&|==|!=|<<|>>|[-+&|^<>=:;,.(){}@])
    """,
    re.VERBOSE | re.ASCII,
)
TOKEN_KINDS = {
    "NAME": "a name",
    "NUMBER": "a number",
    "TEXT": "a name in quotes",
    "SIGN": "an operator",
    "END": "the end of the program",
}
NUMBER_PATTERN = re.compile(r"0x[0-9a-f]{1,32}|0|[1-9][0-9]{0,9}")


class SourcePosition(NamedTuple):
    """Line and column of a character, both from 1."""

    line: int
    column: int


class P4SyntaxError(Exception):
    """The text is no program that the compiler emits; reading stops there."""

    def __init__(self, position: SourcePosition, message: str) -> None:
        super().__init__(message)
        self.position = position
        self.message = message


@dataclass(frozen=True, slots=True)
class P4Token:
    """A word, number or sign, and where it stands. `start`, `end`: its characters in the text."""

    kind: str  # `keyword`, `name`, `number`, `text`, `sign`, `include`, `end`
    text: str
    at: SourcePosition
    start: int
    end: int


def split_tokens(text: str) -> list[P4Token]:
    """All tokens of a text, and one of kind `end` behind them.

    Raises P4SyntaxError at the first character that belongs to no token.
    """
    found: list[P4Token] = []
    start, line, line_start = 0, 1, 0
    while start < len(text):
        at = SourcePosition(line, start - line_start + 1)
        match = TOKEN_PATTERN.match(text, start)
        if match is None:
            what = {'"': "a text without closing quote on its line", "#": "this directive"}
            raise P4SyntaxError(at, what.get(text[start], f"'{text[start]}'") + " is not emitted")
        kind = str(match.lastgroup)
        if kind == "name" and match[0] in P4_KEYWORDS:
            kind = "keyword"
        if kind == "number" and not NUMBER_PATTERN.fullmatch(match[0]):
            raise P4SyntaxError(at, f"{match[0]} is not a number that is emitted")
        if kind != "blank":
            found.append(P4Token(kind, match[0], at, start, match.end()))
        elif "\n" in match[0]:
            line, line_start = line + match[0].count("\n"), start + match[0].rindex("\n") + 1
        start = match.end()
    end = SourcePosition(line, start - line_start + 1)
    return [*found, P4Token("end", "the end of the program", end, start, start)]


class Node:
    """A construct of the text: its parts are attributes, named as in the grammar; those that are left out are None."""

    __slots__ = ("__dict__", "at", "kind")
    __match_args__ = ("kind",)

    def __init__(self, kind: str, at: SourcePosition, parts: dict[str, Any]) -> None:
        self.kind, self.at = kind, at
        self.__dict__ = parts

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self.kind} has no {name}")


def walk_statements(body: Sequence[Node]) -> Iterator[Node]:
    """All statements of a body, those inside others too, in the order of the text."""
    for statement in body:
        yield statement
        if statement.kind == "IfStatement":
            yield from walk_statements((*statement.yes, *statement.no))


class GrammarPart(NamedTuple):
    """A word of a rule, or a group of alternatives."""

    field: str
    what: str
    times: str = ""
    group: tuple[tuple[GrammarPart, ...], ...] = ()


class GrammarRule(NamedTuple):
    """Its alternatives, and what the parts of its nodes are where they are left out."""

    alternatives: tuple[tuple[GrammarPart, ...], ...]
    left_out: dict[str, Any]


@cache
def grammar_rules() -> dict[str, GrammarRule]:
    """The rules by name."""
    found = {}
    for text in re.split(r"\n+(?=\w)", GRAMMAR.strip()):
        name, _, right = text.partition(":")
        rule = _read_alternatives(re.findall(r"'[^']*'|\S+", right))
        found[name] = GrammarRule(rule, dict(_find_fields(rule)))
    return found


def _read_alternatives(words: list[str]) -> tuple[tuple[GrammarPart, ...], ...]:
    """Alternatives up to the end of their group, which is taken from the words."""
    found: list[list[GrammarPart]] = [[]]
    while words and (word := words.pop(0)) != "]":
        if word == "|":
            found.append([])
        elif word in ("[", "[!"):
            found[-1].append(GrammarPart("", word, group=_read_alternatives(words)))
        else:
            part = re.fullmatch(r"(?:(\w+)=)?(\w+)(\*|\+|,\+|!)?", word)
            found[-1].append(GrammarPart(part[1] or "", part[2], part[3] or "") if part else GrammarPart("", word))
    return tuple(map(tuple, found))


def _find_fields(alternatives: Sequence[Sequence[GrammarPart]]) -> Iterator[tuple[str, Any]]:
    for part in (part for alternative in alternatives for part in alternative):
        yield from _find_fields(part.group)
        if part.field:
            yield part.field, () if part.times else None


def parse_program(text: str) -> Node:
    """The syntax tree of a program. Raises P4SyntaxError at the first token that the compiler would not emit there."""
    return _GrammarReader(text).program()


Read = tuple[Any, int]  # what was read, and the number of the token behind it


class _GrammarReader:
    """Tries the alternatives of each rule in their order, and remembers what it read; says how far any of them went."""

    def __init__(self, text: str) -> None:
        self.tokens = split_tokens(text)
        self.rules = grammar_rules()
        self.known: dict[tuple[str, int], Read | None] = {}
        self.furthest = 0
        self.wanted: list[str] = []

    def program(self) -> Node:
        try:
            read = self.rule("P4Program", 0)
        except RecursionError:
            raise P4SyntaxError(self.tokens[self.furthest].at, "is nested too deeply") from None
        if read is None:
            token = self.tokens[self.furthest]
            found = token.text if token.kind == "end" else f"'{token.text}'"
            raise P4SyntaxError(token.at, f"expected {_list_words(self.wanted)}, found {found}")
        node: Node = read[0]
        return node

    def rule(self, name: str, at: int) -> Read | None:
        """What a rule reads from a token on; None if that is something else."""
        if (name, at) not in self.known:
            self.known[name, at] = self.node(name, at)
        return self.known[name, at]

    def node(self, name: str, at: int) -> Read | None:
        rule, wanted = self.rules[name], list(self.wanted) if self.furthest == at else []
        for alternative in rule.alternatives:
            parts = {"": None, "^": at, **rule.left_out}
            end = self.sequence(alternative, at, parts)
            if end is not None:
                alone, place = parts.pop(""), parts.pop("^")
                if parts.pop("any", None):
                    parts |= {"value": 0, "mask": 0}
                return alone or Node(name, self.tokens[place].at, parts), end
        if self.furthest == at and all(word.what in self.rules for (word, *_) in rule.alternatives):
            self.wanted = [*wanted, f"a{'n' * (name[0] in 'AEIO')} {name.lower()}"]
        return None

    def sequence(self, words: Sequence[GrammarPart], at: int, parts: dict[str, Any]) -> int | None:
        """The token behind the words; what they read goes to the parts."""
        for word in words:
            if word.group:
                end = at if word.what == "[" else None
                for alternative in word.group:
                    tried = dict(parts)
                    inside = self.sequence(alternative, at, tried)
                    if inside is not None:
                        end = inside
                        parts |= tried
                        break
            elif word.what == "^" and not word.field:
                parts["^"] = end = at
            else:
                read = self.repeated(word, at) if word.times else self.item(word.what, at)
                end = None if read is None else read[1]
                if read and (word.field or word.what in self.rules):
                    parts[word.field] = read[0]
            if end is None:
                return None
            at = end
        return at

    def repeated(self, word: GrammarPart, at: int) -> Read | None:
        """A tuple of what the word reads again and again."""
        found: list[Any] = []
        following = at
        while (read := self.item(word.what, following)) is not None:
            found.append(read[0])
            at = following = read[1]
            if word.times == "!":
                break
            if word.times == ",+":
                comma = self.item(",", at)
                if comma is None:
                    break
                following = comma[1]
        return (tuple(found), at) if found or word.times == "*" else None

    def item(self, what: str, at: int) -> Read | None:
        """What a rule, a kind of token or a word of the text reads."""
        if what in self.rules:
            return self.rule(what, at)
        if what == "PATH":
            names = self.item("NAME", at)
            while names is not None and self.tokens[names[1]].text == ".":
                following = self.item("NAME", names[1] + 1)
                names = following and (f"{names[0]}.{following[0]}", following[1])
            return names
        token = self.tokens[at]
        match what:
            case "NAME":
                fits = token.kind == "name" or token.text in ALSO_NAMES
            case "NUMBER" | "TEXT" | "END":
                fits = token.kind == what.lower()
            case "SIGN":
                fits = token.text in SIGNS
            case _:
                fits = token.text == what.strip("'") and token.kind != "text"
        if fits:
            value = int(token.text, 0) if what == "NUMBER" else token.text.strip('"')
            return value, at + (what != "END")
        if at > self.furthest:
            self.furthest, self.wanted = at, []
        if at == self.furthest:
            self.wanted.append(TOKEN_KINDS.get(what, what if what[0] == "'" else f"'{what}'"))
        return None


def _list_words(wanted: Sequence[str]) -> str:
    """What would have been right, each once."""
    *others, last = dict.fromkeys(wanted)
    return f"{', '.join(others)} or {last}" if others else last
