"""The text of an emitted P4 program to its tree; each method reads one construct."""

from __future__ import annotations

from collections.abc import Callable

from profiles.faults import suggestion
from tests.reference.p4.checker import tree
from tests.reference.p4.checker.tokens import (
    Item,
    P4SyntaxError,
    SourcePosition,
    TokenCursor,
)

BINARY_SIGNS = ("+", "-", "&", "|", "^", "<<", ">>", "==", "!=", "<", ">")
CALLS_IN_STATEMENTS = ("drop_packet", "send_to_port", "add_entry", "apply", "setValid", "setInvalid", "write")
CALLS_IN_EXPRESSIONS = ("isValid", "read")

PARSER_HEAD = """
    parser MainParser ( packet_in packet , out headers_t hdr , inout metadata_t meta ,
    in pna_main_parser_input_metadata_t istd ) {
"""
PRE_CONTROL = """
    control PreControl ( in headers_t hdr , inout metadata_t meta , in pna_pre_input_metadata_t istd ,
    inout pna_pre_output_metadata_t ostd ) { apply { } }
"""
CONTROL_HEAD = """
    control MainControl ( inout headers_t hdr , inout metadata_t meta , in pna_main_input_metadata_t istd ,
    inout pna_main_output_metadata_t ostd ) {
"""
DEPARSER_HEAD = """
    control MainDeparser ( packet_out packet , in headers_t hdr , in metadata_t meta ,
    in pna_main_output_metadata_t ostd ) { apply {
"""
LEARNING = """
    add_on_miss = true ; idle_timeout_with_auto_delete = true ;
    default_idle_timeout_for_data_plane_added_entries = 1 ;
"""
PACKAGE = "PNA_NIC ( MainParser ( ) , PreControl ( ) , MainControl ( ) , MainDeparser ( ) ) main ;"
"""Parts that are the same wherever they are emitted, token by token."""


def parse_program(text: str) -> tree.P4Program:
    """The syntax tree of a program.

    Raises
    ------
    P4SyntaxError
        At the first token that the compiler would not emit there.
    """
    return _ProgramReader(text).program()


class _ExpressionReader(TokenCursor):
    """Reads types, expressions and statements."""

    def sized_type(self, *words: str) -> tuple[str, int]:
        """`bit<16>`, or with another of these words: the word and the width."""
        if not self.sees(*words):
            raise self.unexpected(" or ".join(f"'{word}'" for word in words))
        word = self.take().text
        self.expect("<", f"behind {word}")
        width = self.number("a width")
        self.expect(">", "behind the width")
        return word, width

    def literal(self) -> tree.NumberLiteral:
        return tree.NumberLiteral(self.here, self.number("a number"))

    def path(self) -> tree.PathUse:
        """Names with dots between them."""
        at = self.here
        names = [self.name("a value")]
        while self.takes("."):
            names.append(self.name("a member"))
        return tree.PathUse(at, ".".join(names))

    def header(self, use: tree.PathUse) -> str:
        """The header that a path names."""
        place, _, header = use.path.partition(".")
        if place != "hdr" or not header or "." in header:
            raise P4SyntaxError(use.at, f"expected a header, as in hdr.ipv4, found {use.path}")
        return header

    def expression(self) -> tree.Expression:
        """An operand, or two with a sign between them: whatever has more signs is emitted in parentheses."""
        left = self._operand()
        if not self.sees(*BINARY_SIGNS):
            return left
        at, sign = self.here, self.take().text
        found = tree.BinaryUse(at, sign, left, self._operand())
        if self.sees(*BINARY_SIGNS):
            raise P4SyntaxError(self.here, f"'{self.next.text}' behind another operator is not emitted", "parentheses")
        return found

    def _operand(self) -> tree.Expression:
        at = self.here
        if self.next.kind == "number":
            return self.literal()
        if not self.takes("("):
            return self._path_or_call()
        with self.nested():
            if not self.sees("bit"):
                inner = self.expression()
                self.expect(")", "that closes the parenthesis")
                return inner
            _, width = self.sized_type("bit")
            self.expect(")", "behind the type of the cast")
            return tree.CastUse(at, width, self._operand())

    def _path_or_call(self) -> tree.Expression:
        use = self.path()
        if use.path == "packet.lookahead":
            self.expect("<", "and the type of a header behind lookahead")
            kind = self.name("a type")
            self.expect("> ( ) .", "and a field behind the type of lookahead")
            return tree.LookaheadUse(use.at, kind, self.name("a field"))
        if not self.takes("("):
            return use
        base, _, method = use.path.rpartition(".")
        found: tree.Expression
        match method:
            case "isValid":
                found = tree.ValidityUse(use.at, self.header(tree.PathUse(use.at, base)))
            case "read":
                found = tree.RegisterRead(use.at, base, self.expression())
            case _:
                raise self._not_called(use, CALLS_IN_EXPRESSIONS)
        self.expect(")", f"behind the arguments of {method}")
        return found

    def _not_called(self, use: tree.PathUse, calls: tuple[str, ...]) -> P4SyntaxError:
        name = use.path.rpartition(".")[2]
        return P4SyntaxError(use.at, f"a call of {name} is not emitted here", suggestion(name, calls))

    def block(self, owner: str) -> tree.Body:
        """`{ statements }`."""
        self.expect("{", f"before the statements of {owner}")
        with self.nested():
            return self.until("}", self._statement)

    def _statement(self) -> tree.Statement:
        if self.sees("if"):
            return self._if_statement()
        if not self.sees_name():
            raise self.unexpected("a statement or '}'")
        use = self.path()
        if self.takes("="):
            value = self.expression()
            self.expect(";", "behind the assignment")
            return tree.Assignment(use.at, use, value)
        self.expect("(", "or '=' behind a name")
        found = self._call(use)
        self.expect(") ;", "behind the call")
        return found

    def _call(self, use: tree.PathUse) -> tree.Statement:
        base, _, method = use.path.rpartition(".")
        match base, method:
            case "", "drop_packet":
                return tree.PacketDrop(use.at)
            case "", "send_to_port":
                self.expect("( PortId_t )", "before the port: a cast is needed")
                return tree.PacketSend(use.at, self.path())
            case "", "add_entry":
                return self._entry_learning(use.at)
            case _, "apply" if base:
                return tree.TableApply(use.at, base)
            case _, "setValid" | "setInvalid":
                return tree.ValidityChange(use.at, self.header(tree.PathUse(use.at, base)), method == "setValid")
            case _, "write":
                index = self.expression()
                self.expect(",", "and the number that is written behind its index")
                return tree.RegisterWrite(use.at, base, index, self.expression())
        raise self._not_called(use, CALLS_IN_STATEMENTS)

    def _entry_learning(self, at: SourcePosition) -> tree.EntryLearning:
        self.expect("action_name =", "as the first argument of add_entry")
        action = self.quoted_name("an action")
        self.expect(", action_params = {", "behind the action of add_entry")
        values = self.listed("}", self.expression)
        self.expect(", expire_time_profile_id = ( ExpireTimeProfileId_t ) 1", "behind the values of add_entry")
        return tree.EntryLearning(at, action, values)

    def _if_statement(self) -> tree.IfStatement:
        at = self.here
        self.expect("if (", "before the condition")
        condition = self.expression()
        self.expect(")", "behind the condition")
        yes = self.block("the branch")
        if not self.takes("else"):
            return tree.IfStatement(at, condition, yes, ())
        if not self.sees("if"):
            return tree.IfStatement(at, condition, yes, self.block("the branch"))
        with self.nested():
            return tree.IfStatement(at, condition, yes, (self._if_statement(),))


class _ProgramReader(_ExpressionReader):
    """Reads declarations, in the order in which they are emitted."""

    def program(self) -> tree.P4Program:
        for file in ("core.p4", "pna.p4"):
            if not self.takes(f"#include <{file}>"):
                raise self.unexpected(f"#include <{file}>")
        # Arguments are evaluated in their order, so each part is read behind the one before it.
        found = tree.P4Program(
            self.repeated("header", self._header_type),
            self._struct("headers_t", self._header),
            self._struct("metadata_t", lambda: self._field("bit")),
            self._states(),
            self._main_registers(),
            self.repeated("action", self._action),
            self._tables(),
            self._main_body(),
            self._emits(),
        )
        self.expect(PACKAGE, "of the package")
        if self.next.kind != "end":
            raise self.unexpected("the end of the program")
        return found

    def _header_type(self) -> tree.HeaderTypeDeclaration:
        at, name = self.here, self.name("a header")
        return tree.HeaderTypeDeclaration(at, name, self._fields(name, lambda: self._field("bit", "varbit")))

    def _struct(self, name: str, read: Callable[[], Item]) -> tuple[Item, ...]:
        self.expect(f"struct {name}", "of a declaration")
        return self._fields(name, read)

    def _fields(self, owner: str, read: Callable[[], Item]) -> tuple[Item, ...]:
        self.expect("{", f"before the fields of {owner}")
        found = []
        while not self.takes("}"):
            found.append(read())
            self.expect(";", f"behind a field of {owner}")
        return tuple(found)

    def _field(self, *words: str) -> tree.FieldDeclaration:
        (word, width), at = self.sized_type(*words), self.here
        return tree.FieldDeclaration(at, width, word == "varbit", self.name("a field"))

    def _header(self) -> tree.HeaderDeclaration:
        return tree.HeaderDeclaration(self.here, self.name("the type of a header"), self.name("a header"))

    # the parser

    def _states(self) -> tuple[tree.StateDeclaration, ...]:
        self.expect(PARSER_HEAD, "of the main parser")
        return self.until("}", self._state)

    def _state(self) -> tree.StateDeclaration:
        self.expect("state", "or '}' in the main parser")
        at, name = self.here, self.name("a state")
        self.expect("{", f"before the statements of state {name}")
        extract = self._extract() if self.sees("packet") else None
        self.expect("transition", f"of state {name}")
        keys: tuple[tree.Expression, ...] = ()
        cases: list[tree.SelectCase] = []
        selects = self.takes("select")
        if selects:
            self.expect("(", "before the keys of select")
            keys = self.listed(")", self.expression)
            self.expect("{", "before the cases of select")
            cases.append(self._case())
            while not self.takes("default"):
                if self.sees("}"):
                    raise P4SyntaxError(at, "select has no default", "packets that match no case would be lost")
                cases.append(self._case())
            self.expect(":", "behind default")
        otherwise = self.name("a state")
        self.expect("; }" if selects else ";", "behind the last state of the transition; default is the last case")
        self.expect("}", f"behind the transition of state {name}")
        return tree.StateDeclaration(at, name, extract, keys, tuple(cases), otherwise)

    def _extract(self) -> tree.HeaderExtract:
        at = self.here
        self.expect("packet . extract (", "before a header")
        header = self.header(self.path())
        length = self.expression() if self.takes(",") else None
        self.expect(") ;", "behind the header")
        return tree.HeaderExtract(at, header, length)

    def _case(self) -> tree.SelectCase:
        at, values = self.here, self._values()
        state = self.name("a state")
        self.expect(";", "behind the state of a case")
        return tree.SelectCase(at, values, state)

    def _values(self) -> tuple[tree.ValueSet, ...]:
        """One set of values for each key, and the colon behind them."""
        values = self.listed(")", self._value_set) if self.takes("(") else (self._value_set(),)
        self.expect(":", "behind the values")
        return values

    def _value_set(self) -> tree.ValueSet:
        at = self.here
        if self.takes("_"):
            return tree.ValueSet(at, 0, 0)
        value = self.number("a value")
        return tree.ValueSet(at, value, self.number("a mask") if self.takes("&&&") else None)

    # the controls

    def _main_registers(self) -> tuple[tree.RegisterDeclaration, ...]:
        self.expect(PRE_CONTROL, "of the pre control")
        self.expect(CONTROL_HEAD, "of the main control")
        return self.repeated("Register", self._register)

    def _register(self) -> tree.RegisterDeclaration:
        self.expect("< bit < 64 > , bit < 32 >> (", "of the types of a register")
        size = self.literal()
        self.expect(",", "behind the size of the register")
        first = self.literal()
        self.expect(")", "behind the first number of the register")
        at, name = self.here, self.name("a register")
        self.expect(";", f"behind register {name}")
        return tree.RegisterDeclaration(at, size, first, name)

    def _action(self) -> tree.ActionDeclaration:
        at, name = self.here, self.name("an action")
        self.expect("(", f"before the parameters of action {name}")
        parameters: tuple[tree.FieldDeclaration, ...] = ()
        if not self.takes(")"):
            parameters = self.listed(")", lambda: self._field("bit"))
        return tree.ActionDeclaration(at, name, parameters, self.block(f"action {name}"))

    def _tables(self) -> tuple[tree.TableDeclaration, ...]:
        found = []
        while self.sees("table", "@"):
            found.append(self._table())
        return tuple(found)

    def _table(self) -> tree.TableDeclaration:
        exclusive: tuple[tree.TableName, ...] = ()
        if self.takes("@"):
            self.expect("mutually_exclusive (", "of the annotation of a table")
            exclusive = self.listed(")", lambda: tree.TableName(self.here, self.quoted_name("a table")))
        self.expect("table", "behind an annotation")
        at, name = self.here, self.name("a table")
        self.expect("{", f"before the parts of table {name}")
        key: tuple[tree.KeyElement, ...] = ()
        if self.takes("key"):
            self.expect("= {", "before the key")
            key = self.until("}", self._key_element)
        self.expect("actions = {", f"before the actions of table {name}")
        actions = self.until("}", self._listed_action)
        self.expect("const default_action =", f"behind the actions of table {name}")
        default = self._action_call()
        self.expect(";", "behind the default action")
        learns = self.sees("add_on_miss")
        entries: tuple[tree.TableEntry, ...] = ()
        if learns:
            self.expect(LEARNING, f"of table {name}, which learns")
        elif self.takes("const"):
            self.expect("entries = {", "behind const")
            entries = self.until("}", self._entry)
        self.expect("size =", f"as the last part of table {name}")
        size = self.literal()
        self.expect("; }", f"behind the size of table {name}")
        return tree.TableDeclaration(at, name, exclusive, key, actions, default, learns, entries, size)

    def _key_element(self) -> tree.KeyElement:
        at, field = self.here, self.path()
        self.expect(":", "and a match kind behind a key")
        kind = self.name("a match kind")
        self.expect(";", "behind the match kind")
        return tree.KeyElement(at, field, kind)

    def _listed_action(self) -> tree.ListedAction:
        note = ""
        if self.takes("@"):
            if not self.sees("tableonly", "defaultonly"):
                raise self.unexpected("'tableonly' or 'defaultonly' before an action")
            note = self.take().text
        at, name = self.here, self.name("an action")
        self.expect(";", "behind an action")
        return tree.ListedAction(at, name, note)

    def _action_call(self) -> tree.ActionCall:
        at, name = self.here, self.name("an action")
        self.expect("(", f"before the arguments of action {name}")
        return tree.ActionCall(at, name, () if self.takes(")") else self.listed(")", self.literal))

    def _entry(self) -> tree.TableEntry:
        at, values = self.here, self._values()
        action = self._action_call()
        self.expect(";", "behind an entry")
        return tree.TableEntry(at, values, action)

    def _main_body(self) -> tree.Body:
        if not self.takes("apply"):
            raise self.unexpected("a register, an action, a table or apply, in this order, in the main control")
        body = self.block("the main control")
        self.expect("}", "behind the main control; apply is its last part")
        return body

    def _emits(self) -> tuple[tree.HeaderEmit, ...]:
        self.expect(DEPARSER_HEAD, "of the deparser")
        found = self.until("}", self._emit)
        self.expect("}", "behind the deparser")
        return found

    def _emit(self) -> tree.HeaderEmit:
        at = self.here
        self.expect("packet . emit (", "or '}' in the deparser")
        header = self.header(self.path())
        self.expect(") ;", "behind the header")
        return tree.HeaderEmit(at, header)
