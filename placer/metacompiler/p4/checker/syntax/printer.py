"""A syntax tree as text: what is parsed from it is the same tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from placer.metacompiler.p4.checker.syntax import tree
from placer.metacompiler.p4.checker.syntax.expressions import PRECEDENCE

INDENT = "    "
_PREFIXED = len(PRECEDENCE) + 1
"""Binds closer than every binary operator."""


def printed(program: tree.P4Program) -> str:
    """The program as text, indented by four spaces."""
    return "\n".join(line for one in program.declarations for line in _declaration(one)) + "\n"


def printed_type(kind: tree.TypeSyntax) -> str:
    """A type as text."""
    match kind:
        case tree.SizedType():
            number = isinstance(kind.width, tree.NumberLiteral)
            width = printed_expression(kind.width)
            return f"{kind.kind}<{width if number else f'({width})'}>"
        case tree.StackType():
            return f"{printed_type(kind.element)}[{printed_expression(kind.size)}]"
    return kind.name + _types(kind.arguments)


def printed_expression(of: tree.Expression, least: int = 0) -> str:
    """An expression as text, in parentheses where it binds less than `least`."""
    match of:
        case tree.BinaryUse():
            level = PRECEDENCE[of.sign]
            left = printed_expression(of.left, level + 1 if of.sign in ("<", ">") else level)
            text = f"{left} {of.sign} {printed_expression(of.right, level + 1)}"
            return f"({text})" if level < least else text
        case tree.ConditionalUse():
            condition = printed_expression(of.condition, 1)
            text = f"{condition} ? {printed_expression(of.yes)} : {printed_expression(of.no)}"
            return f"({text})" if least > 0 else text
        case tree.UnaryUse():
            text = of.sign + printed_expression(of.of, _PREFIXED)
        case tree.CastUse():
            text = f"({printed_type(of.type)}) {_operand_of_cast(of.of)}"
        case _:
            return _operand(of)
    return f"({text})" if least > _PREFIXED else text


def _operand_of_cast(of: tree.Expression) -> str:
    """Behind a cast, a minus would be read as a subtraction, and a list not at all."""
    if isinstance(of, tree.UnaryUse) and of.sign == "-":
        return f"({printed_expression(of)})"
    return printed_expression(of, _PREFIXED)


def _operand(of: tree.Expression) -> str:
    match of:
        case tree.NumberLiteral():
            return of.spelling or (str(of.value) if of.width is None else f"{of.width}w{of.value}")
        case tree.TruthLiteral():
            return "true" if of.value else "false"
        case tree.TextLiteral():
            return f'"{of.text}"'
        case tree.NameUse():
            return of.name
        case tree.MemberUse():
            return f"{_base(of.of)}.{of.name}"
        case tree.IndexUse():
            return f"{_base(of.of)}[{printed_expression(of.index)}]"
        case tree.SliceUse():
            return f"{_base(of.of)}[{printed_expression(of.high)}:{printed_expression(of.low)}]"
        case tree.CallUse():
            return f"{_base(of.function)}{_types(of.types)}({_arguments(of.arguments)})"
        case tree.ListUse():
            return f"{{{', '.join(map(_item, of.items))}}}"
    raise AssertionError(of)


def _base(of: tree.Expression) -> str:
    return printed_expression(of, _PREFIXED + 1)


def _types(arguments: Sequence[tree.TypeSyntax]) -> str:
    return f"<{', '.join(map(printed_type, arguments))}>" if arguments else ""


def _arguments(arguments: Iterable[tree.CallArgument]) -> str:
    return ", ".join(_item(one.value) if one.name is None else f"{one.name} = {_item(one.value)}" for one in arguments)


def _item(of: tree.Expression) -> str:
    """Between commas, `a < b, c > (d)` would be read as a call with types."""
    compares = isinstance(of, tree.BinaryUse) and of.sign in ("<", ">")
    return f"({printed_expression(of)})" if compares else printed_expression(of)


def _values(values: Sequence[tree.ValueSet]) -> str:
    text = ", ".join(map(_value_set, values))
    return text if len(values) == 1 else f"({text})"


def _value_set(of: tree.ValueSet) -> str:
    match of:
        case tree.AnyValue():
            return of.word
        case tree.MaskedValue():
            return f"{printed_expression(of.value)} &&& {printed_expression(of.mask)}"
        case tree.ValueRange():
            return f"{printed_expression(of.low)} .. {printed_expression(of.high)}"
    return printed_expression(of)


def _annotations(annotations: Sequence[tree.Annotation]) -> list[str]:
    return [_annotation(one) for one in annotations]


def _annotation(one: tree.Annotation) -> str:
    if one.pragma is not None:
        return f"@pragma {one.pragma}"
    if one.arguments is None:
        return f"@{one.name}"
    return f"@{one.name}({', '.join(map(_item, one.arguments))})"


def _inline(annotations: Sequence[tree.Annotation]) -> str:
    """Annotations in front of something on its line; a pragma ends its line."""
    return "".join(f"{text}\n" if text.startswith("@pragma") else f"{text} " for text in _annotations(annotations))


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (INDENT + line for line in lines)


def _declaration(one: tree.Declaration) -> Iterator[str]:
    match one:
        case tree.IncludeLine():
            yield f"#include <{one.file}>"
            return
        case tree.ConstantDeclaration() | tree.InstanceDeclaration() | tree.ActionDeclaration():
            yield from _local(one)
            return
    yield from _annotations(one.annotations)
    match one:
        case tree.TypeDeclaration():
            yield f"{one.word} {printed_type(one.type)} {one.name};"
        case tree.FieldsDeclaration():
            yield f"{one.word} {one.name} {{"
            for field in one.fields:
                yield f"{INDENT}{_inline(field.annotations)}{printed_type(field.type)} {field.name};"
            yield "}"
        case tree.ParserDeclaration():
            yield f"parser {one.name}({_parameters(one.parameters)}) {{"
            for local in one.locals:
                yield from _indented(_local(local))
            for state in one.states:
                yield from _indented(_state(state))
            yield "}"
        case tree.ControlDeclaration():
            yield f"control {one.name}({_parameters(one.parameters)}) {{"
            for part in one.locals:
                yield from _indented(_local(part))
            yield from _indented(_block("apply ", one.body))
            yield "}"


def _parameters(parameters: Iterable[tree.ParameterDeclaration]) -> str:
    return ", ".join(
        _inline(one.annotations) + " ".join(word for word in (one.direction, printed_type(one.type), one.name) if word)
        for one in parameters
    )


def _local(one: tree.ControlLocal) -> Iterator[str]:
    yield from _annotations(one.annotations)
    match one:
        case tree.VariableDeclaration():
            value = "" if one.value is None else f" = {printed_expression(one.value)}"
            yield f"{printed_type(one.type)} {one.name}{value};"
        case tree.ConstantDeclaration():
            yield f"const {printed_type(one.type)} {one.name} = {printed_expression(one.value)};"
        case tree.InstanceDeclaration():
            yield f"{printed_type(one.type)}({_arguments(one.arguments)}) {one.name};"
        case tree.ActionDeclaration():
            yield from _block(f"action {one.name}({_parameters(one.parameters)}) ", one.body)
        case tree.TableDeclaration():
            yield from _table(one)


def _table(one: tree.TableDeclaration) -> Iterator[str]:
    yield f"table {one.name} {{"
    if one.key:
        yield f"{INDENT}key = {{"
        for element in one.key:
            notes = "".join(f" {text}" for text in _annotations(element.annotations))
            yield f"{INDENT * 2}{printed_expression(element.expression)}: {element.match_kind}{notes};"
        yield f"{INDENT}}}"
    yield f"{INDENT}actions = {{"
    for action in one.actions:
        yield f"{INDENT * 2}{_action(action)};"
    yield f"{INDENT}}}"
    if one.default is not None:
        yield f"{INDENT}{'const ' if one.constant_default else ''}default_action = {_action(one.default)};"
    if one.entries is not None:
        yield f"{INDENT}const entries = {{"
        for entry in one.entries:
            notes = "".join(f" {text}" for text in _annotations(entry.annotations))
            yield f"{INDENT * 2}{_values(entry.values)}: {_action(entry.action)}{notes};"
        yield f"{INDENT}}}"
    for part in one.properties:
        yield f"{INDENT}{'const ' if part.constant else ''}{part.name} = {printed_expression(part.value)};"
    yield "}"


def _action(one: tree.ActionUse) -> str:
    return f"{_inline(one.annotations)}{one.name}({_arguments(one.arguments)})"


def _state(one: tree.StateDeclaration) -> Iterator[str]:
    yield from _annotations(one.annotations)
    yield f"state {one.name} {{"
    for statement in one.statements:
        yield from _indented(_statement(statement))
    if one.transition is not None:
        yield from _indented(_transition(one.transition))
    yield "}"


def _transition(one: tree.Transition) -> Iterator[str]:
    if one.state is not None:
        yield f"transition {one.state};"
        return
    yield f"transition select({', '.join(map(_item, one.keys))}) {{"
    for case in one.cases:
        yield f"{INDENT}{_values(case.values)}: {case.state};"
    yield "}"


def _block(head: str, block: tree.BlockStatement) -> Iterator[str]:
    yield f"{head}{{"
    for statement in block.statements:
        yield from _indented(_statement(statement))
    yield "}"


def _statement(one: tree.Statement) -> Iterator[str]:
    match one:
        case tree.VariableDeclaration() | tree.ConstantDeclaration():
            yield from _local(one)
        case tree.Assignment():
            yield f"{printed_expression(one.target)} = {printed_expression(one.value)};"
        case tree.CallStatement():
            yield f"{printed_expression(one.call)};"
        case tree.IfStatement():
            yield from _branch(f"if ({printed_expression(one.condition)})", one.yes)
            if one.no is not None:
                yield from _branch("else", one.no)
        case tree.BlockStatement():
            yield from _annotations(one.annotations)
            yield from _block("", one)
        case tree.LeaveStatement():
            yield f"{one.word};"
        case tree.EmptyStatement():
            yield ";"


def _branch(head: str, one: tree.Statement) -> Iterator[str]:
    if isinstance(one, tree.BlockStatement) and not one.annotations:
        yield from _block(f"{head} ", one)
        return
    first, *others = _statement(one)
    yield f"{head} {first}"
    yield from others
