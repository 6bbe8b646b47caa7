"""Types and expressions, read from tokens."""

from __future__ import annotations

from placer.metacompiler.p4.checker.faults import P4SyntaxError, SourcePosition
from placer.metacompiler.p4.checker.syntax import tree
from placer.metacompiler.p4.checker.syntax.cursor import TokenCursor
from placer.metacompiler.p4.checker.syntax.lexer import number_of

LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("|",),
    ("^",),
    ("&",),
    ("<<", ">>"),
    ("+", "-", "++"),
    ("*", "/", "%"),
)
"""Binary operators, those that bind least first (specification, appendix G)."""

PRECEDENCE = {sign: level for level, signs in enumerate(LEVELS, start=1) for sign in signs}
BASE_TYPES = ("bool", "error", "string", "void")
SIGNED = "the subset has only unsigned numbers: bit<N>"


class ExpressionReader(TokenCursor):
    """Reads types, expressions and sets of values."""

    def type(self) -> tree.TypeSyntax:
        """A type: `bit<16>`, `bool`, `ethernet_t`, `vlan_t[2]`."""
        at = self.here
        if self.sees("bit", "varbit"):
            return self._sized_type(at)
        if self.sees(*BASE_TYPES):
            return tree.NamedType(at, self.take().text)
        if self.sees("int"):
            raise P4SyntaxError(at, "int is not a type of the subset", SIGNED)
        if not self.sees_name():
            raise self.unexpected("a type")
        named = self.named_type()
        if self.takes("["):
            size = self.expression()
            self.expect("]", "behind the size of the stack")
            return tree.StackType(at, named, size)
        return named

    def named_type(self) -> tree.NamedType:
        """A name with its type arguments."""
        at = self.here
        name = self.name("a type")
        arguments = self._type_arguments() if self.sees("<") else ()
        return tree.NamedType(at, name, arguments)

    def _sized_type(self, at: SourcePosition) -> tree.SizedType:
        kind = self.take().text
        if kind == "bit" and not self.sees("<"):
            return tree.SizedType(at, kind, tree.NumberLiteral(at, 1))
        self.expect("<", f"and a width behind {kind}")
        if self.takes("("):
            width = self.expression()
            self.expect(")", "behind the width")
        elif self.next.kind == "number":
            width = self._number()
        else:
            raise self.unexpected("a width", "a width that is computed stands in parentheses: bit<(N)>")
        self.expect(">", "behind the width")
        return tree.SizedType(at, kind, width)

    def _type_arguments(self) -> tuple[tree.TypeSyntax, ...]:
        self.expect("<", "before the types")
        found = [self.type()]
        while self.takes(","):
            found.append(self.type())
        self.expect(">", "behind the types")
        return tuple(found)

    def expression(self) -> tree.Expression:
        """An expression."""
        self.deeper()
        condition = self._binary(1)
        if self.sees("?"):
            self.take()
            yes = self.expression()
            self.expect(":", "between the two values of '?'")
            condition = tree.ConditionalUse(condition.at, condition, yes, self.expression())
        self.depth -= 1
        return condition

    def _binary(self, least: int) -> tree.Expression:
        left = self._prefixed()
        while True:
            sign = self._operator()
            level = PRECEDENCE.get(sign, 0)
            if level < least:
                return left
            at = self.here
            self.number += 2 if sign == ">>" else 1
            left = tree.BinaryUse(at, sign, left, self._binary(level + 1))

    def _operator(self) -> str:
        """The sign that comes next; two `>` that touch are a shift."""
        if self.next.kind != "sign":
            return ""
        follower = self.ahead(1)
        if self.next.text == ">" and follower.text == ">" and follower.start == self.next.end:
            return ">>"
        return self.next.text

    def _prefixed(self) -> tree.Expression:
        at = self.here
        if self.sees("-", "~", "!"):
            sign = self.take().text
            self.deeper()
            of = self._prefixed()
            self.depth -= 1
            return tree.UnaryUse(at, sign, of)
        if self._sees_cast():
            self.take()
            cast = self.type()
            self.expect(")", "behind the type of the cast")
            self.deeper()
            of = self._prefixed()
            self.depth -= 1
            return tree.CastUse(at, cast, of)
        return self._followed(self._primary())

    def _sees_cast(self) -> bool:
        """`(bit<8>) x` or `(PortId_t) x`: behind a name in parentheses stands another operand."""
        if not self.sees("("):
            return False
        if self.ahead(1).kind == "keyword" and self.ahead(1).text in ("bit", "bool", "error"):
            return not (self.ahead(1).text == "error" and self.ahead(2).text == ".")
        if not (self.sees_name(1) and self.ahead(2).text == ")"):
            return False
        operand = self.ahead(3)
        return operand.kind in ("name", "number") or operand.text in ("(", "~", "!", "true", "false")

    def _primary(self) -> tree.Expression:
        at = self.here
        if self.next.kind == "number":
            return self._number()
        if self.next.kind == "text":
            return tree.TextLiteral(at, self.take().text[1:-1])
        if self.sees("true", "false"):
            return tree.TruthLiteral(at, self.take().text == "true")
        if self.takes("("):
            inner = self.expression()
            self.expect(")", "that closes the parenthesis")
            return inner
        if self.takes("{"):
            items = [] if self.sees("}") else [self.expression()]
            while self.takes(","):
                items.append(self.expression())
            self.expect("}", "behind the list")
            return tree.ListUse(at, tuple(items))
        if self.sees("error"):
            return tree.NameUse(at, self.take().text)
        if self.sees_name():
            return tree.NameUse(at, self.take().text)
        raise self.unexpected("an expression")

    def _followed(self, of: tree.Expression) -> tree.Expression:
        """Members, slices, elements and calls behind an operand."""
        while True:
            if self.takes("."):
                of = tree.MemberUse(of.at, of, self._member())
            elif self.takes("["):
                of = self._bracketed(of)
            elif self.sees("("):
                of = tree.CallUse(of.at, of, (), self.arguments())
            elif self.sees("<") and isinstance(of, tree.NameUse | tree.MemberUse):
                types = self._types_of_call()
                if types is None:
                    return of
                of = tree.CallUse(of.at, of, types, self.arguments())
            else:
                return of

    def _member(self) -> str:
        return self.name("a member")

    def _bracketed(self, of: tree.Expression) -> tree.Expression:
        first = self.expression()
        if self.takes(":"):
            low = self.expression()
            self.expect("]", "behind the slice")
            return tree.SliceUse(of.at, of, first, low)
        self.expect("]", "behind the index")
        return tree.IndexUse(of.at, of, first)

    def _types_of_call(self) -> tuple[tree.TypeSyntax, ...] | None:
        """The types in `lookahead<vlan_t>()`; None, and nothing read, where `<` compares."""
        number, depth = self.number, self.depth
        try:
            types = self._type_arguments()
            if self.sees("("):
                return types
        except P4SyntaxError:
            pass
        self.number, self.depth = number, depth
        return None

    def arguments(self) -> tuple[tree.CallArgument, ...]:
        """`(a, name = b)`."""
        self.expect("(", "before the arguments")
        found: list[tree.CallArgument] = []
        if not self.sees(")"):
            found.append(self._argument())
            while self.takes(","):
                found.append(self._argument())
        self.expect(")", "behind the arguments")
        return tuple(found)

    def _argument(self) -> tree.CallArgument:
        at = self.here
        if self.sees_name() and self.ahead(1).text == "=" and self.ahead(1).kind == "sign":
            name = self.take().text
            self.take()
            return tree.CallArgument(at, name, self.expression())
        return tree.CallArgument(at, None, self.expression())

    def _number(self) -> tree.NumberLiteral:
        at = self.here
        text = self.take().text
        found = number_of(text)
        if isinstance(found, str):
            raise P4SyntaxError(at, found)
        return tree.NumberLiteral(at, *found, spelling=text)

    def value_sets(self) -> tuple[tree.ValueSet, ...]:
        """`_`, `0x0800`, `(1 .. 5, 6 &&& 7)`: one set for each key."""
        if not self.sees("("):
            return (self._value_set(),)
        start, depth = self.number, self.depth
        self.take()
        found = [self._value_set()]
        while self.takes(","):
            found.append(self._value_set())
        if self.takes(")") and self.sees(":"):
            return tuple(found)
        if len(found) > 1:
            raise self.unexpected("')' and ':' behind the values")
        self.number, self.depth = start, depth
        return (self._value_set(),)

    def _value_set(self) -> tree.ValueSet:
        at = self.here
        if self.sees("_", "default"):
            return tree.AnyValue(at, self.take().text)
        value = self.expression()
        if self.takes("&&&"):
            return tree.MaskedValue(at, value, self.expression())
        if self.takes(".."):
            return tree.ValueRange(at, value, self.expression())
        return value

    def annotations(self) -> tuple[tree.Annotation, ...]:
        """All annotations that stand here."""
        found = []
        while self.sees("@") or self.next.kind == "pragma":
            at = self.here
            if self.next.kind == "pragma":
                words = self.take().text.split()[1:]
                found.append(tree.Annotation(at, "pragma", None, " ".join(words)))
                continue
            self.take()
            name = self.name("an annotation")
            arguments = None
            if self.sees("("):
                arguments = tuple(argument.value for argument in self.arguments())
            found.append(tree.Annotation(at, name, arguments))
        return tuple(found)
