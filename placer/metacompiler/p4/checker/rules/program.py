"""A whole program: its declarations, its package, and what only the whole shows."""

from __future__ import annotations

from placer.metacompiler.p4.checker.faults import SourcePosition
from placer.metacompiler.p4.checker.rules.annotations import AnnotationRules
from placer.metacompiler.p4.checker.rules.architecture import FUNCTIONS, INCLUDES, TYPES
from placer.metacompiler.p4.checker.rules.blocks import PACKAGE
from placer.metacompiler.p4.checker.rules.context import CheckContext, DeclaredName
from placer.metacompiler.p4.checker.rules.control_paths import ExclusiveTables, applied_twice
from placer.metacompiler.p4.checker.rules.extraction import ParserPaths, parser_paths
from placer.metacompiler.p4.checker.rules.package import PackageRules
from placer.metacompiler.p4.checker.rules.types import (
    UNKNOWN,
    VOID,
    BitsType,
    DistinctType,
    ExternType,
    FieldsType,
    P4Type,
    VariableBitsType,
    bits_of,
)
from placer.metacompiler.p4.checker.syntax import tree

START = SourcePosition(1, 1)


class ProgramRules(PackageRules):
    """Checks a program from its first declaration to its last."""

    def __init__(self, context: CheckContext) -> None:
        super().__init__(context)
        self.paths = ParserPaths()
        self.structs: list[tree.FieldsDeclaration] = []

    def program(self, program: tree.P4Program) -> None:
        """Check all declarations, then the whole."""
        AnnotationRules(self.context).check(program)
        self._declare_architecture()
        with self.context.scope():
            self._includes(program)
            for one in program.declarations:
                self._declaration(one)
            if self.package is None:
                self.context.fault(program.at, f"the program has no instance of {PACKAGE} with the name main")
        self._check_headers()
        self._check_fields()
        self._warn_of_fields()

    def _declare_architecture(self) -> None:
        for name, kind in TYPES.items():
            self.context.declare(DeclaredName(name, "type", kind))
        for name in {one.name for one in FUNCTIONS}:
            self.context.declare(DeclaredName(name, "function", VOID))
        nothing = tree.ActionDeclaration(START, "NoAction", (), tree.BlockStatement(START, ()))
        self.context.declare(DeclaredName("NoAction", "action", VOID, declaration=nothing))
        self.context.declare(DeclaredName(PACKAGE, "package", VOID))

    def _includes(self, program: tree.P4Program) -> None:
        included = set()
        first = next((one.at for one in program.declarations if not isinstance(one, tree.IncludeLine)), None)
        for one in program.declarations:
            if not isinstance(one, tree.IncludeLine):
                continue
            if one.file not in INCLUDES:
                self.context.fault(one.at, f"there is no {one.file}", "only <core.p4> and <pna.p4>")
            if one.file in included:
                self.context.fault(one.at, f"{one.file} is included twice")
            if first is not None and first < one.at:
                self.context.fault(one.at, f"{one.file} is included behind other declarations")
            included.add(one.file)
        for file in INCLUDES:
            if file not in included:
                self.context.fault(program.at, f"{file} is not included", f"#include <{file}>")

    def _declaration(self, one: tree.Declaration) -> None:
        match one:
            case tree.ConstantDeclaration():
                self.constant(one)
            case tree.TypeDeclaration():
                self._type(one)
            case tree.FieldsDeclaration():
                self._fields(one)
            case tree.ParserDeclaration():
                self.parser(one)
                self.paths = parser_paths(one)
                for at, message in self.paths.faults:
                    self.context.fault(at, message)
            case tree.ControlDeclaration():
                self._control(one)
            case tree.ActionDeclaration():
                self.action(one)
            case tree.InstanceDeclaration():
                if one.type.name == PACKAGE:
                    self.package_instance(one)
                else:
                    self.instance(one)

    def _type(self, one: tree.TypeDeclaration) -> None:
        kind: P4Type = self.type_of(one.type)
        if one.word == "type":
            if not isinstance(kind, BitsType) and kind != UNKNOWN:
                self.context.fault(one.at, f"a type of its own is made from bit<N>, not {kind}")
            kind = DistinctType(one.name, kind)
        self.context.declare(DeclaredName(one.name, "type", kind, one.at))

    def _fields(self, one: tree.FieldsDeclaration) -> None:
        fields: dict[str, P4Type] = {}
        for each in one.fields:
            kind = self.type_of(each.type)
            if each.name in fields:
                self.context.fault(each.at, f"{one.word} {one.name} has field {each.name} twice")
            if not _may_be_field(kind, one.word):
                self.context.fault(each.at, f"a field of a {one.word} cannot be {kind}")
            fields[each.name] = kind
        if one.word == "header":
            self._check_widths(one, fields)
        self.structs.append(one)
        self.context.declare(DeclaredName(one.name, "type", FieldsType(one.word, one.name, fields), one.at))

    def _check_widths(self, one: tree.FieldsDeclaration, fields: dict[str, P4Type]) -> None:
        variable = [kind for kind in fields.values() if isinstance(kind, VariableBitsType)]
        widths = [bits_of(kind) for kind in fields.values() if not isinstance(kind, VariableBitsType)]
        if not fields:
            self.context.fault(one.at, f"header {one.name} has no fields")
        if len(variable) > 1:
            self.context.fault(one.at, f"header {one.name} has more than one varbit field")
        total = sum(width or 0 for width in widths)
        if None not in widths and total % 8:
            self.context.fault(one.at, f"header {one.name} has {total} bits: not a whole number of bytes")
        for kind in variable:
            if kind.most % 8:
                self.context.fault(one.at, f"header {one.name}: {kind} is not a whole number of bytes")

    def _control(self, one: tree.ControlDeclaration) -> None:
        kinds = {parameter.type.name for parameter in one.parameters if isinstance(parameter.type, tree.NamedType)}
        role = "deparser" if "packet_out" in kinds else "control"
        with self.context.within(role), self.context.scope():
            self.parameters(one.parameters)
            for part in one.locals:
                self._control_part(part, role)
            self.statements(one.body.statements)
        for at, message in (*applied_twice(one), *ExclusiveTables(one).faults()):
            self.context.fault(at, message)
        self.context.declare(DeclaredName(one.name, "control", VOID, one.at, declaration=one))

    def _control_part(self, part: tree.ControlLocal, role: str) -> None:
        match part:
            case tree.VariableDeclaration():
                self.variable(part)
            case tree.ConstantDeclaration():
                self.constant(part)
            case tree.InstanceDeclaration():
                self.instance(part)
            case tree.ActionDeclaration():
                self.action(part)
            case tree.TableDeclaration():
                if role == "deparser":
                    self.context.fault(part.at, "a deparser has no tables")
                self.table(part)

    def _check_headers(self) -> None:
        """Headers that are read but never valid, that are never written out, or written in another order."""
        uses = self.context.uses
        for key, at in uses.headers_read.items():
            if key not in uses.headers_made:
                self.context.fault(at, f"header {key[1]} is read, but nothing extracts it or sets it valid")
        if self.package is None:
            return
        emitted: dict[tuple[str, str], SourcePosition] = {}
        for key, at in uses.headers_emitted:
            if key in emitted:
                self.context.fault(at, f"header {key[1]} is emitted twice")
            for other in emitted:
                forward, backward = (key[1], other[1]), (other[1], key[1])
                if forward in self.paths.order and backward not in self.paths.order:
                    self.context.fault(at, f"header {key[1]} is emitted behind {other[1]}, but extracted before it")
            emitted[key] = at
            if key not in uses.headers_made:
                self.context.warn(at, f"header {key[1]} is emitted, but never valid")
        for key, at in uses.headers_made.items():
            if key not in emitted:
                self.context.fault(at, f"header {key[1]} is never emitted: its bytes would be lost")

    def _check_fields(self) -> None:
        """Fields of structs that are read, but that nothing writes."""
        uses = self.context.uses
        for one in self.structs:
            plain = (each for each in one.fields if one.word == "struct" and not self._holds_fields(each.type))
            for key in ((one.name, each.name) for each in plain):
                if key in uses.fields_read and key not in uses.fields_written:
                    message = f"field {key[1]} of struct {key[0]} is read, but nothing gives it a value"
                    self.context.fault(uses.fields_read[key], message)

    def _holds_fields(self, kind: tree.TypeSyntax) -> bool:
        names = {one.name for one in self.structs}
        return isinstance(kind, tree.StackType) or (isinstance(kind, tree.NamedType) and kind.name in names)

    def _warn_of_fields(self) -> None:
        for one in self.structs:
            for each in one.fields if one.word == "struct" else ():
                if (one.name, each.name) not in self.context.uses.mentioned:
                    self.context.warn(each.at, f"field {each.name} of struct {one.name} is never used")


def _may_be_field(kind: P4Type, word: str) -> bool:
    if kind == UNKNOWN:
        return True
    if word == "header":
        return isinstance(kind, BitsType | VariableBitsType | DistinctType)
    return not isinstance(kind, ExternType | VariableBitsType) and str(kind) not in ("void", "string")
