"""The package: its blocks fit what the architecture wants, and one another."""

from __future__ import annotations

from placer.metacompiler.p4.checker.rules.architecture import TypeVariable
from placer.metacompiler.p4.checker.rules.blocks import BLOCKS, PACKAGE, PackageBlock
from placer.metacompiler.p4.checker.rules.context import DeclaredName
from placer.metacompiler.p4.checker.rules.parsers import ParserRules
from placer.metacompiler.p4.checker.rules.types import (
    UNKNOWN,
    VOID,
    FieldsType,
    HeaderStackType,
    P4Type,
    is_header,
)
from placer.metacompiler.p4.checker.syntax import tree

Block = tree.ParserDeclaration | tree.ControlDeclaration


class PackageRules(ParserRules):
    """Checks the instance of the package."""

    package: tree.InstanceDeclaration | None = None

    def package_instance(self, one: tree.InstanceDeclaration) -> None:
        """Check and declare `PNA_NIC(parser(), control(), control(), deparser()) main;`."""
        if one.name != "main":
            self.context.fault(one.at, f"the instance of {PACKAGE} is called main, found {one.name}")
        self.package = one
        if one.type.arguments:
            self.context.fault(one.at, f"{PACKAGE} takes no types in <> here")
        if len(one.arguments) != len(BLOCKS):
            wanted = ", ".join(block.name for block in BLOCKS)
            self.context.fault(one.at, f"{PACKAGE} takes {len(BLOCKS)} blocks, found {len(one.arguments)}", wanted)
            return
        bound: dict[TypeVariable, P4Type] = {}
        by_name = {block.name: block for block in BLOCKS}
        for block, argument in zip(BLOCKS, one.arguments, strict=True):
            if argument.name is not None and argument.name not in by_name:
                self.context.fault(argument.at, f"{PACKAGE} has no block {argument.name}")
                continue
            self._block(by_name[argument.name] if argument.name else block, argument, bound)
        self._check_headers_struct(one, bound)
        self.context.declare(DeclaredName(one.name, "package", VOID, one.at))

    def _block(self, block: PackageBlock, argument: tree.CallArgument, bound: dict[TypeVariable, P4Type]) -> None:
        call = argument.value
        plain = isinstance(call, tree.CallUse) and isinstance(call.function, tree.NameUse) and not call.arguments
        if not (isinstance(call, tree.CallUse) and isinstance(call.function, tree.NameUse) and plain):
            self.context.fault(argument.at, f"{block.name} of {PACKAGE}: expected NAME() of a {block.word}")
            return
        name = call.function.name
        known = self.context.found(name, argument.at, (block.word,), block.word)
        if known is None or not isinstance(known.declaration, tree.ParserDeclaration | tree.ControlDeclaration):
            return
        self._signature(block, known.declaration, argument, bound)

    def _signature(
        self, block: PackageBlock, found: Block, argument: tree.CallArgument, bound: dict[TypeVariable, P4Type]
    ) -> None:
        what = f"{block.word} {found.name} as {block.name}"
        if len(found.parameters) != len(block.parameters):
            message = f"{what}: expected {len(block.parameters)} parameters, found {len(found.parameters)}"
            self.context.fault(argument.at, message)
            return
        for parameter, wanted in zip(found.parameters, block.parameters, strict=True):
            if parameter.direction != wanted.direction:
                expected, is_ = wanted.direction or "no direction", parameter.direction or "none"
                self.context.fault(parameter.at, f"{what}: {parameter.name} needs {expected}, found {is_}")
            kind = self.type_of(parameter.type)
            expected_type = wanted.type
            if isinstance(expected_type, TypeVariable):
                expected_type = bound.setdefault(expected_type, kind)
            if UNKNOWN not in (kind, expected_type) and kind != expected_type:
                self.context.fault(parameter.at, f"{what}: {parameter.name} needs {expected_type}, found {kind}")

    def _check_headers_struct(self, one: tree.InstanceDeclaration, bound: dict[TypeVariable, P4Type]) -> None:
        """What is parsed and written out is a struct of headers."""
        kind = next((found for variable, found in bound.items() if variable.name == "MH"), UNKNOWN)
        if kind == UNKNOWN:
            return
        if not isinstance(kind, FieldsType) or kind.word != "struct":
            self.context.fault(one.at, f"the headers of {PACKAGE} are a struct, found {kind}")
            return
        for name, part in kind.fields.items():
            if not is_header(part) and not isinstance(part, HeaderStackType) and part != UNKNOWN:
                self.context.fault(one.at, f"field {name} of {kind} is {part}, not a header")
