"""A program without what no packet needs: metadata that nothing reads, and headers, states and actions without use."""

from collections.abc import Iterator
from dataclasses import replace

from placer.rack.compiler.switch.program import (
    Assign,
    Body,
    Compute,
    Count,
    FieldComparison,
    If,
    IsValid,
    Learn,
    ParserEdge,
    SetValid,
    Statement,
    SwitchProgram,
    TakeNumber,
    UpdateChecksum,
    Value,
)


def drop_needless(program: SwitchProgram) -> SwitchProgram:
    """The same program with less; packets are treated equally."""
    program = _drop_unused_actions(program)
    while True:
        read = set(_read(program))
        smaller = replace(
            program,
            control=_without_dead(program.control, read),
            actions=tuple(replace(action, body=_without_dead(action.body, read)) for action in program.actions),
        )
        if smaller == program:
            break
        program = smaller
    program = _drop_unparsed_headers(program)
    named = {name[2:] for name in (*_read(program), *_write(program)) if name.startswith("m.")} | {"port", "drop"}
    return replace(program, metadata={name: bits for name, bits in program.metadata.items() if name in named})


def _drop_unused_actions(program: SwitchProgram) -> SwitchProgram:
    used = {action for table in program.tables for action in table.actions}
    return replace(program, actions=tuple(action for action in program.actions if action.name in used))


def _drop_unparsed_headers(program: SwitchProgram) -> SwitchProgram:
    """Without states from which no header that is used can be reached; parsing ends there."""
    used = {name.split(".")[1] for name in (*_read(program), *_write(program)) if name.startswith("h.")}
    used |= set(_headers(program.control)) | {"ethernet"}
    for action in program.actions:
        used |= set(_headers(action.body))
    needed: set[str] = set()
    edges: list[ParserEdge] = list(program.parser)
    while True:
        more = {edge.source for edge in edges if edge.target in used | needed} - needed
        if not more:
            break
        needed |= more
    kept = tuple(edge for edge in edges if edge.target in used | needed)
    states = {edge.target for edge in kept}
    headers = tuple(header for header in program.headers if header.name in states)
    return replace(program, parser=kept, headers=headers)


def _headers(body: Body) -> Iterator[str]:
    for statement in body:
        match statement:
            case SetValid(header):
                yield header
            case If(condition, then, otherwise):
                if isinstance(condition, IsValid):
                    yield condition.header
                yield from _headers(then)
                yield from _headers(otherwise)


def _read(program: SwitchProgram) -> Iterator[str]:
    """The fields that something reads."""
    yield from read_by(program.control)
    for action in program.actions:
        yield from read_by(action.body)
    for table in program.tables:
        yield from (key.field for key in table.keys)
    for edge in program.parser:
        yield from (test.field for test in edge.tests if test.field.startswith("m."))


def read_by(body: Body) -> Iterator[str]:
    """The fields that a body reads."""

    def fields(*values: Value) -> Iterator[str]:
        yield from (value for value in values if isinstance(value, str))

    for statement in body:
        match statement:
            case Assign(_, value):
                yield from fields(value)
            case Compute(_, to, value):
                yield from fields(value)
                if to.startswith("h."):
                    yield to
            case UpdateChecksum(checksum, before, after):
                yield from (checksum, before, after)
            case Count(_, index):
                yield from fields(index)
            case TakeNumber(_, index, _):
                yield from fields(index)
            case Learn(_, arguments):
                yield from fields(*arguments)
            case If(condition, then, otherwise):
                if isinstance(condition, FieldComparison):
                    yield from fields(condition.left, condition.right)
                yield from read_by(then)
                yield from read_by(otherwise)


def _write(program: SwitchProgram) -> Iterator[str]:
    for body in (program.control, *(action.body for action in program.actions)):
        yield from fields_written_by(body)


def fields_written_by(body: Body) -> Iterator[str]:
    """The fields that a body writes, but for those of checksums."""
    for statement in body:
        match statement:
            case Assign(to, _) | Compute(_, to, _) | TakeNumber(_, _, to):
                yield to
            case If(_, then, otherwise):
                yield from fields_written_by(then)
                yield from fields_written_by(otherwise)


KEPT_FIELDS = {"m.port", "m.drop"}  # what the switch itself reads


def _without_dead(body: Body, read: set[str]) -> Body:
    """Without statements that write metadata that nothing reads, and without empty cases."""
    found: list[Statement] = []
    for statement in body:
        match statement:
            case Assign(to, _) | Compute(_, to, _) if to.startswith("m.") and to not in read | KEPT_FIELDS:
                continue
            case If(condition, then, otherwise, note):
                then, otherwise = _without_dead(then, read), _without_dead(otherwise, read)
                if then or otherwise:
                    found.append(If(condition, then, otherwise, note))
            case _:
                found.append(statement)
    return tuple(found)
