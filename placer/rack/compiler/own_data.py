"""Operators' own data of the NFs of chains: read, checked, and counted, as `placer chain place` and `compile` do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from placer.rack.chain import Chain, ChainNf
from placer.rack.compiler.library.given_data import FaultMaker, GivenData
from placer.rack.compiler.library.match import name_expressions
from placer.rack.compiler.library.nf_kind import NF_KINDS
from placer.rack.compiler.traffic.entries import ExpressionError, parse, unmet_expressions
from placer.rack.files.chains_file import ChainsText
from placer.rack.files.sources import SourceFolder
from profiles.faults import Fault, InputError, collect_faults, suggestion

FILTERS = "filters"  # the parameter whose expressions branches name


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


def load_own_data(read: ChainsText, folder: SourceFolder | None = None) -> ChainsText:
    """The chains of a file with the sizes of their own data as parameters, and the sources of all.

    `folder`: opens their files; None: from the folder of the chains.

    Raises InputError with every fault: of own data, of other parameters of its NFs, and of branches that name no
    expression, or whose packets all take branches before them.
    """
    folder, faults = folder or SourceFolder(read.folder), list[Fault]()
    reader = OwnDataReader(folder)
    chains = tuple(_load(chain, read, reader, faults) for chain in read.chains)
    if faults:
        raise InputError(list(dict.fromkeys(faults)))
    return replace(read, chains=chains, sources=folder.opened)


def _load(chain: Chain, read: ChainsText, reader: OwnDataReader, faults: list[Fault]) -> Chain:
    nfs: list[ChainNf] = []
    own: list[Mapping[str, Any] | None] = []  # None where it is faulty
    for nf in chain.nfs:
        fault = partial(_fault_of, read, chain.name, nf.id)
        found: Mapping[str, Any] | None = None
        try:
            found = reader.read(nf, fault) if nf.data else {}
            nf = replace(nf, parameters={**nf.parameters, **_sizes(found)})
            if found:
                NF_KINDS[nf.nf].completed(nf.parameters, "", found)
        except InputError as error:
            faults += [
                wrong if wrong.file else fault(wrong.column or "", wrong.message, wrong.hint) for wrong in error.faults
            ]
        nfs.append(nf)
        own.append(found)
    for at, expressions in enumerate(own):
        if expressions is not None:
            refuse = partial(_refuse_branch, read, chain, at, faults)
            edges = [edge for edge in chain.edges_from(at) if edge.match]
            matches = [name_expressions(edge.match, expressions.get(FILTERS, ()), refuse) for edge in edges]
            for edge in [edges[number] for number in _unmet(matches)]:
                message = f'no packet takes the branch "{edge.match}": it fits none, or those before it take them all'
                hint = (
                    "write branches with the same match as one, with the sum of their shares; a wider match comes later"
                )
                faults.append(read.fault(chain.name, chain.nfs[at].id, message, hint))
    return replace(chain, nfs=tuple(nfs))


def _unmet(matches: Sequence[str]) -> list[int]:
    """The numbers of matches that hold for no packet without an earlier one; none where one cannot be read."""
    try:
        return unmet_expressions(list(map(parse, matches)))
    except ExpressionError:
        return []  # `compile` refuses it


def _sizes(own: Mapping[str, Any]) -> dict[str, float]:
    """How many entries own data has, where it has any: an ACL's `rules` are counted, a key is not."""
    return {name: float(len(data)) for name, data in own.items() if isinstance(data, tuple)}


def _fault_of(read: ChainsText, chain: str, nf: str, within: str, message: str, hint: str | None) -> Fault:
    return read.fault(chain, nf, message, hint, within=within)


def _refuse_branch(read: ChainsText, chain: Chain, tail: int, faults: list[Fault], message: str) -> None:
    hint = 'Match(filters = "edge.match") has an expression a line; "@1" is the first'
    faults.append(read.fault(chain.name, chain.nfs[tail].id, message, hint))
