"""Whole programs, read from tokens."""

from __future__ import annotations

from placer.metacompiler.p4.checker.faults import P4SyntaxError
from placer.metacompiler.p4.checker.syntax import tree
from placer.metacompiler.p4.checker.syntax.tables import TableReader

Annotations = tuple[tree.Annotation, ...]
DIRECTIONS = ("in", "out", "inout")


def parsed(text: str) -> tree.P4Program:
    """The syntax tree of a program.

    Raises
    ------
    P4SyntaxError
        At the first token that does not belong there.
    """
    return ProgramReader(text).program()


class ProgramReader(TableReader):
    """Reads declarations; each method reads one rule of the grammar."""

    def program(self) -> tree.P4Program:
        """All declarations up to the end."""
        at = self.here
        found = []
        while self.next.kind != "end":
            found.append(self._declaration())
        return tree.P4Program(at, tuple(found))

    def _declaration(self) -> tree.Declaration:
        at = self.here
        if self.next.kind == "include":
            return tree.IncludeLine(at, self.take().text.split("<")[1].rstrip(">").strip())
        annotations = self.annotations()
        if self.sees("const"):
            return self.constant(annotations)
        if self.sees("typedef", "type"):
            return self._type_declaration(annotations)
        if self.sees("header", "struct"):
            return self._fields(annotations)
        if self.sees("parser"):
            return self._parser(annotations)
        if self.sees("control"):
            return self._control(annotations)
        if self.sees("action"):
            return self._action(annotations)
        if self.sees_name():
            return self._instance(annotations)
        hint = "the subset has no enum, extern, package, header_union" if self.next.kind == "keyword" else None
        raise self.unexpected("a declaration", hint)

    def _type_declaration(self, annotations: Annotations) -> tree.TypeDeclaration:
        word = self.take().text
        of = self.type()
        at = self.here
        name = self.name("a type")
        self.expect(";", f"behind the type {name}")
        return tree.TypeDeclaration(at, word, of, name, annotations)

    def _fields(self, annotations: Annotations) -> tree.FieldsDeclaration:
        word = self.take().text
        at = self.here
        name = self.name(f"a {word}")
        self.expect("{", f"before the fields of {name}")
        fields = []
        while not self.takes("}"):
            notes = self.annotations()
            of = self.type()
            place = self.here
            field = self.name(f"a field of {name}")
            self.expect(";", f"behind the field {field}")
            fields.append(tree.FieldDeclaration(place, of, field, notes))
        return tree.FieldsDeclaration(at, word, name, tuple(fields), annotations)

    def _parameters(self, of: str) -> tuple[tree.ParameterDeclaration, ...]:
        self.expect("(", f"before the parameters of {of}")
        found: list[tree.ParameterDeclaration] = []
        while not self.takes(")"):
            if found:
                self.expect(",", f"between the parameters of {of}")
            annotations = self.annotations()
            direction = self.take().text if self.sees(*DIRECTIONS) else ""
            kind = self.type()
            at = self.here
            found.append(tree.ParameterDeclaration(at, direction, kind, self.name("a parameter"), annotations))
        return tuple(found)

    def _parser(self, annotations: Annotations) -> tree.ParserDeclaration:
        self.take()
        at = self.here
        name = self.name("a parser")
        parameters = self._parameters(f"parser {name}")
        self.expect("{", f"before the states of parser {name}")
        local = []
        while not self._sees_state():
            local.append(self._parser_local(name))
        states = []
        while not self.takes("}"):
            states.append(self._state(name))
        return tree.ParserDeclaration(at, name, parameters, tuple(local), tuple(states), annotations)

    def _sees_state(self) -> bool:
        if self.next.kind == "pragma":
            return False
        ahead = 0
        while self.ahead(ahead).text == "@":
            ahead += 2
            if self.ahead(ahead).text == "(":
                while self.ahead(ahead).kind != "end" and self.ahead(ahead).text != ")":
                    ahead += 1
                ahead += 1
        return self.ahead(ahead).text in ("state", "}") or self.ahead(ahead).kind == "end"

    def _parser_local(self, of: str) -> tree.VariableDeclaration | tree.ConstantDeclaration | tree.InstanceDeclaration:
        annotations = self.annotations()
        if self.sees("const"):
            return self.constant(annotations)
        if self.sees_declaration():
            return self.variable(annotations)
        if self.sees_name():
            return self._instance(annotations)
        raise self.unexpected(f"a state of parser {of}")

    def _state(self, of: str) -> tree.StateDeclaration:
        annotations = self.annotations()
        self.expect("state", f"or '}}' in parser {of}")
        at = self.here
        name = self.name("a state")
        self.expect("{", f"before the statements of state {name}")
        statements = []
        while not self.sees("transition", "}"):
            if self.next.kind == "end":
                raise self.unexpected(f"a transition, or '}}', of state {name}")
            statements.append(self.statement())
        transition = self._transition(name) if self.sees("transition") else None
        self.expect("}", f"behind state {name}")
        return tree.StateDeclaration(at, name, tuple(statements), transition, annotations)

    def _transition(self, of: str) -> tree.Transition:
        at = self.here
        self.take()
        if not self.takes("select"):
            state = self.name("a state")
            self.expect(";", f"behind the transition of state {of}")
            return tree.Transition(at, state)
        self.expect("(", "before the keys of select")
        keys = [self.expression()]
        while self.takes(","):
            keys.append(self.expression())
        self.expect(")", "behind the keys of select")
        self.expect("{", "before the cases of select")
        cases = []
        while not self.takes("}"):
            place = self.here
            values = self.value_sets()
            self.expect(":", "behind the values of a case")
            state = self.name("a state")
            self.expect(";", "behind the state of a case")
            cases.append(tree.SelectCase(place, values, state))
        return tree.Transition(at, None, tuple(keys), tuple(cases))

    def _control(self, annotations: Annotations) -> tree.ControlDeclaration:
        self.take()
        at = self.here
        name = self.name("a control")
        parameters = self._parameters(f"control {name}")
        self.expect("{", f"before the parts of control {name}")
        local = []
        while not self._sees_apply():
            local.append(self._control_local(name))
        self.take()
        body = self.block(f"control {name}")
        self.expect("}", f"behind control {name}; apply is its last part")
        return tree.ControlDeclaration(at, name, parameters, tuple(local), body, annotations)

    def _sees_apply(self) -> bool:
        return self.sees("apply") and self.ahead(1).text == "{"

    def _control_local(self, of: str) -> tree.ControlLocal:
        annotations = self.annotations()
        if self.sees("const"):
            return self.constant(annotations)
        if self.sees("action"):
            return self._action(annotations)
        if self.sees("table"):
            return self.table(annotations)
        if self.sees_declaration():
            return self.variable(annotations)
        if self.sees_name() and not self.sees("apply"):
            return self._instance(annotations)
        raise self.unexpected(f"an action, a table, a variable or apply in control {of}")

    def _action(self, annotations: Annotations) -> tree.ActionDeclaration:
        self.take()
        at = self.here
        name = self.name("an action")
        parameters = self._parameters(f"action {name}")
        return tree.ActionDeclaration(at, name, parameters, self.block(f"action {name}"), annotations)

    def _instance(self, annotations: Annotations) -> tree.InstanceDeclaration:
        at = self.here
        of = self.named_type()
        if not self.sees("("):
            raise P4SyntaxError(at, f"'{of.name}' begins no declaration here")
        arguments = self.arguments()
        at = self.here
        name = self.name(f"the instance of {of.name}")
        self.expect(";", f"behind the instance {name}")
        return tree.InstanceDeclaration(at, of, arguments, name, annotations)
