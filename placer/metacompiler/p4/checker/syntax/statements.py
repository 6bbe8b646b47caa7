"""Statements, read from tokens."""

from __future__ import annotations

from placer.metacompiler.p4.checker.faults import P4SyntaxError
from placer.metacompiler.p4.checker.syntax import tree
from placer.metacompiler.p4.checker.syntax.expressions import BASE_TYPES, ExpressionReader


class StatementReader(ExpressionReader):
    """Reads statements of actions, `apply` blocks and parser states."""

    def block(self, of: str) -> tree.BlockStatement:
        """`{ ... }`."""
        at = self.here
        self.expect("{", f"before the statements of {of}")
        self.deeper()
        statements = []
        while not self.sees("}"):
            if self.next.kind == "end":
                raise self.unexpected(f"'}}' behind the statements of {of}")
            statements.append(self.statement())
        self.take()
        self.depth -= 1
        return tree.BlockStatement(at, tuple(statements))

    def statement(self) -> tree.Statement:
        """One statement."""
        annotations = self.annotations()
        at = self.here
        if self.sees("{"):
            block = self.block("the block")
            return tree.BlockStatement(at, block.statements, annotations)
        if self.sees("const"):
            return self.constant(annotations)
        if self.sees_declaration():
            return self.variable(annotations)
        if annotations:
            raise P4SyntaxError(at, "an annotation stands before a declaration or a block")
        return self._plain_statement()

    def _plain_statement(self) -> tree.Statement:
        at = self.here
        if self.sees("if"):
            return self._if_statement()
        if self.sees("switch"):
            raise P4SyntaxError(at, "switch is not of the subset", "use if (t.apply().hit)")
        if self.sees("return", "exit"):
            word = self.take().text
            self.expect(";", f"behind {word}")
            return tree.LeaveStatement(at, word)
        if self.takes(";"):
            return tree.EmptyStatement(at)
        target = self._followed(self._primary())
        if self.takes("="):
            value = self.expression()
            self.expect(";", "behind the assignment")
            return tree.Assignment(at, target, value)
        if not isinstance(target, tree.CallUse):
            raise self.unexpected("'=' or a call")
        self.expect(";", "behind the call")
        return tree.CallStatement(at, target)

    def _if_statement(self) -> tree.IfStatement:
        at = self.here
        self.take()
        self.expect("(", "before the condition")
        condition = self.expression()
        self.expect(")", "behind the condition")
        self.deeper()
        yes = self._branch()
        no = self._branch() if self.takes("else") else None
        self.depth -= 1
        return tree.IfStatement(at, condition, yes, no)

    def _branch(self) -> tree.Statement:
        found = self.statement()
        if isinstance(found, tree.VariableDeclaration | tree.ConstantDeclaration):
            raise P4SyntaxError(found.at, "a declaration alone is no branch of an if", "put it into braces")
        return found

    def sees_declaration(self) -> bool:
        """A type and a name stand here."""
        if self.sees("bit", "varbit", "int", *BASE_TYPES):
            return not (self.sees("error") and self.ahead(1).text == ".")
        if not self.sees_name():
            return False
        if self.sees_name(1):
            return True
        return self.ahead(1).text == "[" and self.ahead(3).text == "]" and self.sees_name(4)

    def variable(self, annotations: tuple[tree.Annotation, ...]) -> tree.VariableDeclaration:
        """`type name = value;`."""
        of = self.type()
        at = self.here
        name = self.name("a variable")
        value = self.expression() if self.takes("=") else None
        self.expect(";", f"behind the declaration of {name}")
        return tree.VariableDeclaration(at, of, name, value, annotations)

    def constant(self, annotations: tuple[tree.Annotation, ...]) -> tree.ConstantDeclaration:
        """`const type name = value;`."""
        self.take()
        of = self.type()
        at = self.here
        name = self.name("a constant")
        self.expect("=", f"and the value of {name}")
        value = self.expression()
        self.expect(";", f"behind the constant {name}")
        return tree.ConstantDeclaration(at, of, name, value, annotations)
