"""Operators' own data of the NFs of chains: read, checked, and counted, as `placer chain place` and `compile` do."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from placer.rack.chain import Chain, ChainNf
from placer.rack.compiler.library.given_data import FaultMaker, GivenData
from placer.rack.compiler.library.match import EXPRESSION_NAME, name_expressions
from placer.rack.compiler.library.nf_kind import NF_KINDS, NfKind
from placer.rack.compiler.traffic.entries import ExpressionError, parse, unmet_expressions
from placer.rack.compiler.traffic.expression import Everything, Expression
from placer.rack.files.chains_file import ChainsText
from placer.rack.files.sources import SourceFolder
from profiles.faults import Fault, InputError, collect_faults, suggestion

FILTERS = "filters"  # the parameter whose expressions branches name
NAME_HINT = 'Match(filters = "edge.match") has an expression a line; "@1" is the first'
UNMET_HINT = "write branches with the same match as one, with the sum of their shares; a wider match comes later"


@dataclass
class OwnDataReader:
    """Reads own data of NFs. What several NFs of a kind give is read once."""

    folder: SourceFolder
    _known: dict[tuple[str, str, str], Any] = field(default_factory=dict, init=False)

    def read(self, nf: ChainNf, fault: FaultMaker) -> dict[str, Any]:
        """By parameter, what the library makes of own data of an NF. Raises InputError with every fault."""
        faults: list[Fault] = []
        found: dict[str, Any] = {}
        kind = NF_KINDS.get(nf.nf)
        readers = {parameter.name: parameter.read for parameter in kind.own} if kind else {}
        for name, value in nf.data.items():
            key = nf.nf, name, repr(value)
            if kind is None:
                hint = suggestion(nf.nf, NF_KINDS)
                faults.append(fault(name, f"the library has no {nf.nf}, so it takes numbers only", hint))
            elif name not in readers:
                known = [*readers, *(parameter.name for parameter in kind.parameters)]
                numeric = any(parameter.name == name for parameter in kind.parameters)
                message = f"{name} of {nf.nf} is a number" if numeric else f"{nf.nf} has no such parameter"
                faults.append(fault(name, message, None if numeric or not known else suggestion(name, known)))
            else:
                with collect_faults(faults):
                    if key not in self._known:
                        self._known[key] = readers[name](GivenData(name, value, self.folder, fault))
                    found[name] = self._known[key]
        if faults:
            raise InputError(faults)
        return found


def is_known(chain: Chain) -> bool:
    """Whether the library knows all NFs; where it does not, the chain is about costs alone."""
    return all(nf.nf in NF_KINDS for nf in chain.nfs)


def is_to_compile(chains: Sequence[Chain]) -> bool:
    """Whether any NF has parameters, and the library knows all NFs."""
    return all(map(is_known, chains)) and any(nf.parameters or nf.data for chain in chains for nf in chain.nfs)


def load_own_data(read: ChainsText, folder: SourceFolder | None = None) -> ChainsText:
    """The chains of a file with the sizes of their own data as parameters, and the sources of all.

    `folder`: opens their files; None: from the folder of the chains.

    Raises InputError with every fault: of own data, of other parameters of its NFs, of expressions, and of branches
    that name no expression, or whose packets all take branches before them.
    """
    folder, faults = folder or SourceFolder(read.folder), list[Fault]()
    loader = _Loader(read, OwnDataReader(folder), is_to_compile(read.chains), faults)
    chains = tuple(map(loader.load, read.chains))
    if faults:
        raise InputError(list(dict.fromkeys(faults)))
    return replace(read, chains=chains, sources=folder.opened)


@dataclass(frozen=True)
class _Loader:
    """Loads own data of chains, and collects faults.

    `checks`: whether NFs without parameters are checked for those that must be set.
    """

    read: ChainsText
    reader: OwnDataReader
    checks: bool
    faults: list[Fault]

    def load(self, chain: Chain) -> Chain:
        """A chain with the sizes of its own data as parameters."""
        nfs, expressions = list[ChainNf](), dict[int, Sequence[str] | None]()
        for at, nf in enumerate(chain.nfs):
            fault = partial(self.fault, chain.name, nf.id)
            own: dict[str, Any] | None = None
            try:
                own = self.reader.read(nf, fault)
            except InputError as error:
                self.faults.extend(error.faults)
            nfs.append(replace(nf, parameters={**nf.parameters, **_sizes(own or {})}))
            expressions[at] = None if own is None and FILTERS in nf.data else (own or {}).get(FILTERS, ())
            if nf.nf in NF_KINDS and (nf.parameters or nf.data or self.checks):
                self.check_parameters(nfs[-1], own, fault)
        for at, of in expressions.items():
            self.check_branches(chain, at, of)
        for number, text in enumerate(chain.aggregates, 1):
            fault = partial(self.fault, chain.name, "aggregate", f"{number}")
            if (expression := self.read_expression(chain, text, fault)) and unmet_expressions([expression]):
                self.faults.append(fault(f'no packet fits the aggregate "{text}"', None))
        return replace(chain, nfs=tuple(nfs))

    def check_parameters(self, nf: ChainNf, own: Mapping[str, Any] | None, fault: FaultMaker) -> None:
        """Find numbers that an NF does not take: each for itself where `own` is None, as its data cannot be read."""
        kind = NF_KINDS[nf.nf]
        try:
            if own is None:
                NfKind.completed(kind, nf.parameters, "", nf.data)
            else:
                kind.completed(nf.parameters, "", *([own] if own else []))
        except InputError as error:
            for wrong in error.faults:
                # the column of a text does not say which parameter it is, as the place in a twin does
                name = f"{wrong.column}: " if wrong.column and self.read.places else ""
                place = fault(wrong.column or "", f"{name}{wrong.message}", wrong.hint)
                self.faults.append(wrong if wrong.file else place)

    def check_branches(self, chain: Chain, at: int, expressions: Sequence[str] | None) -> None:
        """Find branches behind an NF whose match is wrong, and those that no packet takes.

        Matches of branches inside of branches are read as they are written, and composed only if all can be read.
        `expressions`: of its file; None where that cannot be read, so that nothing is known of those with a name.
        """
        nf = chain.nfs[at].id
        edges = {f"branch {number}": edge.match for number, edge in enumerate(chain.edges_from(at), 1) if edge.match}
        written = {branch: self.read.matches.get((chain.name, f"{nf}.{branch}"), [edges[branch]]) for branch in edges}
        read: dict[str, Expression | None] = {}
        for branch, texts in written.items():
            for part, text in enumerate(texts, 1):
                within = branch if part == len(texts) else f"{branch}.{part}"
                read[within] = self.read_match(chain, text, expressions, partial(self.fault, chain.name, nf, within))
        complete = None not in read.values()
        found: dict[str, Expression] = {}
        for branch, match in edges.items():
            expression = read[branch] if written[branch] == [match] else None
            if expression is None and complete:
                expression = self.read_match(chain, match, expressions, partial(self.fault, chain.name, nf, branch))
            if expression is not None:
                found[branch] = expression
        for number in unmet_expressions(list(found.values())) if complete or is_known(chain) else ():
            branch = list(found)[number]
            message = f'no packet takes the branch "{edges[branch]}": it fits none, or those before it take them all'
            self.faults.append(self.fault(chain.name, nf, branch, message, UNMET_HINT))
        shared = [f"branch {number}" for number, edge in enumerate(chain.edges_from(at), 1) if not edge.match]
        if shared and len(found) == len(edges) and len(found) in unmet_expressions([*found.values(), Everything()]):
            message = "no packet is left for a branch without a match: the matches take them all"
            self.faults.append(self.fault(chain.name, nf, shared[0], message, "leave it out"))

    def read_match(
        self, chain: Chain, text: str, expressions: Sequence[str] | None, fault: Callable[[str, str | None], Fault]
    ) -> Expression | None:
        """What a match says, with expressions for their names; None where that cannot be read."""
        if expressions is None and EXPRESSION_NAME.search(text):
            return None
        wrong = list[str]()
        named = name_expressions(text, expressions or (), wrong.append)
        self.faults.extend(fault(message, NAME_HINT) for message in wrong)
        return None if wrong else self.read_expression(chain, named, fault)

    def read_expression(self, chain: Chain, text: str, fault: Callable[[str, str | None], Fault]) -> Expression | None:
        """What a traffic expression says; None, and a fault if the library knows the chain, where it is wrong."""
        try:
            return parse(text)
        except ExpressionError as error:
            if is_known(chain):
                message = f'"{text}": {error.message} (at character {error.at + 1})'
                self.faults.append(fault(message, error.hint))
            return None

    def fault(self, chain: str, nf: str, within: str, message: str, hint: str | None) -> Fault:
        return self.read.fault(chain, nf, message, hint, within=within)


def _sizes(own: Mapping[str, Any]) -> dict[str, float]:
    """How many entries own data has, where it has any: an ACL's `rules` are counted, a key is not."""
    return {name: float(len(data)) for name, data in own.items() if isinstance(data, tuple)}
