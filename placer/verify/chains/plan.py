"""The plan of a certificate, checked against the model in exact fractions."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

from placer.rack.chain import Chain
from placer.verify.chains.claims import PLANNED_STATUSES, ChainCertificate, ClaimedChain, ClaimedSubgroup
from placer.verify.chains.facts import (
    LIMIT_TOLERANCE,
    SWITCH_SITE,
    ChainFacts,
    Component,
    core_sites,
    on_switch,
    pools_of,
)
from placer.verify.chains.machines import nic_rates
from placer.verify.chains.stage_fit import fits, stages_for
from placer.verify.chains.table_fit import TableFit


def plan_faults(certificate: ChainCertificate) -> Iterator[str]:
    """Everything that is wrong with the plan, a sentence each."""
    plan = certificate.plan
    if plan.status not in PLANNED_STATUSES:
        if plan.chains or plan.marginal_mbps is not None:
            yield f"plan: the status is {plan.status}, and there is a plan"
        return
    names = [chain.name for chain in certificate.chains]
    if Counter(chain.name for chain in plan.chains) != Counter(names):
        yield "plan: its chains are not those of the certificate, each once"
        return
    yield from _Plan(certificate).faults()


def above(value: Fraction, limit: Fraction) -> bool:
    """Whether a value is above a limit by more than is allowed."""
    return value > limit + LIMIT_TOLERANCE * abs(limit)


class _Plan:
    def __init__(self, certificate: ChainCertificate) -> None:
        self.certificate, self.rack = certificate, certificate.rack
        self.sites = core_sites(self.rack)
        self.number = {site.name: number for number, site in enumerate(self.sites)} | {"switch": SWITCH_SITE}
        self.on_core: dict[tuple[str, int], list[Fraction]] = {}  # shares of each core, by device and number
        by_name = {chain.name: chain for chain in certificate.plan.chains}
        self.placed = [(chain, by_name[chain.name]) for chain in certificate.chains]

    def faults(self) -> Iterator[str]:
        """Faults of each chain, then of what they share."""
        placed, sound = [], True
        for chain, claimed in self.placed:
            facts = ChainFacts(chain, self.rack, self.sites)
            wrong = list(self._placement(facts, claimed))
            yield from (f"plan: {chain.name}: {fault}" for fault in wrong)
            sound = sound and not wrong
            if sound:
                placed.append((facts, claimed, self._sites(chain, claimed)))
        if sound:
            for facts, claimed, sites in placed:
                yield from (f"plan: {claimed.name}: {fault}" for fault in self._chain(facts, claimed, sites))
            yield from self._cores()
            yield from self._nics(placed)
            yield from self._stages([sites for *_, sites in placed])
            yield from self._sum()

    def _placement(self, facts: ChainFacts, claimed: ClaimedChain) -> Iterator[str]:
        """NFs that are missing, or where they cannot run."""
        ids = [nf.id for nf in facts.chain.nfs]
        if set(claimed.placement) != set(ids):
            yield "other NFs are placed than it has"
            return
        for nf, identity in enumerate(ids):
            on = claimed.placement[identity]
            site = self.number.get(on)
            if site is None:
                yield f"{identity} is on {on}, which the rack does not have"
            elif (facts.blocks(nf) if site == SWITCH_SITE else facts.cost(nf, site)) is None:
                yield f"{identity} cannot run on {on}"
        for group in claimed.subgroups:
            if group.on not in self.number or not set(group.nfs) <= set(ids):
                yield f"the subgroup on {group.on} is not of this chain and rack"
            elif self._site(group) is None:
                yield f"the subgroup on {group.on} is not at one socket and one NIC of it"

    def _site(self, group: ClaimedSubgroup) -> int | None:
        """The site of a subgroup; None if there is none or several of them."""
        found = [
            number
            for number, site in enumerate(self.sites)
            if site.name == group.on
            and group.nic in (None, site.nic)
            and (site.cores.holds(group.on_cores or ()) if group.socket is None else site.socket == group.socket)
        ]
        return found[0] if len(found) == 1 else None

    def _sites(self, chain: Chain, claimed: ClaimedChain) -> list[int]:
        """By NF; of NFs in no subgroup, any site of the device."""
        sites = {nf: self.number[on] for nf, on in claimed.placement.items()}
        for group in claimed.subgroups:
            if (site := self._site(group)) is not None:
                sites.update((nf, site) for nf in group.nfs if claimed.placement[nf] == group.on)
        return [sites[nf.id] for nf in chain.nfs]

    def _chain(self, facts: ChainFacts, claimed: ClaimedChain, sites: Sequence[int]) -> Iterator[str]:
        slo, rate = facts.chain.slo, claimed.rate_mbps
        if above(slo.t_min_mbps, rate):
            yield f"its rate is {float(rate):g} Mbps, and t_min is {float(slo.t_min_mbps):g}"
        if above(rate, slo.t_max_mbps):
            yield f"its rate is {float(rate):g} Mbps, and t_max is {float(slo.t_max_mbps):g}"
        latency = facts.latency_us(sites)
        if abs(latency - claimed.latency_us) > LIMIT_TOLERANCE * latency:
            yield f"its latency is {float(latency):g} us, not {float(claimed.latency_us):g}"
        if slo.d_max_us is not None and above(latency, slo.d_max_us):
            yield f"its latency is {float(latency):g} us, and d_max is {float(slo.d_max_us):g}"
        if not facts.keeps_table_order(sites):
            yield "its NFs on the switch do not follow the order of the tables"
        if not facts.keeps_sockets(sites):
            yield "connected NFs on a server are not at one socket and one NIC"
        ids = [nf.id for nf in facts.chain.nfs]
        expected = {
            (component.site, frozenset(ids[nf] for nf in component.nfs)): component
            for component in facts.components(sites)
        }
        given = [(self._site(group), frozenset(group.nfs)) for group in claimed.subgroups]
        if Counter(given) != Counter(expected.keys()):
            yield "its subgroups are not the connected NFs of each device"
            return
        for group, component in zip(
            claimed.subgroups, (expected[key] for key in given if key in expected), strict=True
        ):
            yield from self._subgroup(group, component, rate)

    def _subgroup(self, group: ClaimedSubgroup, component: Component, rate: Fraction) -> Iterator[str]:
        name = f"{' '.join(group.nfs)} on {group.on}"
        cores, share = self.sites[component.site].cores, group.cores
        if (share.numerator != 1 and share.denominator != 1) or (share < 1 and not (share and cores.shared)):
            yield f"{name} has {share} cores"
            return
        on_cores = group.on_cores or []
        if (group.on_cores is not None or cores.shared) and (
            len(set(on_cores)) != len(on_cores) or len(on_cores) != max(share, 1) or not cores.holds(on_cores)
        ):
            yield f"{name} has {share} cores, which are not {on_cores} of {cores.name}"
        for core in on_cores:
            self.on_core.setdefault((group.on, core), []).append(share)
        carried = component.carries(group.cores)
        if carried == 0:
            yield f"{name} has {group.cores} cores, and only one may run it"
        elif carried is not None and above(rate, carried):
            yield f"{name} carries {float(carried):g} Mbps, not {float(rate):g}"

    def _cores(self) -> Iterator[str]:
        used: dict[str, Fraction] = {}
        for _, claimed in self.placed:
            for group in claimed.subgroups:
                if (site := self._site(group)) is not None:
                    name = self.sites[site].cores.name
                    used[name] = used.get(name, Fraction(0)) + group.cores
        for cores in pools_of(self.sites):
            if used.get(cores.name, 0) > cores.number:
                yield f"plan: {used[cores.name]} cores of {cores.name} are used, of {cores.number}"
        for (on, core), shares in self.on_core.items():
            if any(min(share, Fraction(1)) * len(shares) > 1 for share in shares):
                given = ", ".join(map(str, shares))
                yield f"plan: {len(shares)} subgroups take turns on core {core} of {on}, and they have {given} of it"

    def _nics(self, placed: Sequence[tuple[ChainFacts, ClaimedChain, Sequence[int]]]) -> Iterator[str]:
        carried: dict[tuple[int, str], Fraction] = {}
        nics = [pair for server in self.rack.servers for pair in zip(server.nic_names, nic_rates(server), strict=True)]
        for facts, claimed, sites in placed:
            for key, share in facts.share_by_nic(sites).items():
                carried[key] = carried.get(key, Fraction(0)) + share * claimed.rate_mbps
        for (side, way), mbps in sorted(carried.items()):
            name, limit = nics[side]
            if above(mbps, limit):
                yield f"plan: the NIC of {name} carries {float(mbps):g} Mbps {way}, of {float(limit):g}"

    def _stages(self, all_sites: Sequence[Sequence[int]]) -> Iterator[str]:
        chains, tables = self.certificate.chains, list(on_switch(all_sites))
        stages = stages_for(chains, self.rack, tables)
        if self.rack.stage_oracle == "tables" and stages is not None:
            packing = self.certificate.plan.packing or {}
            yield from (f"plan: {fault}" for fault in TableFit(chains, self.rack, tables, stages).faults(packing))
            return
        fit = fits(chains, self.rack, tables)
        if not fit:
            said = "do not fit" if fit is False else "were not found to fit"
            yield f"plan: {len(tables)} tables {said} {stages} stages of the switch"

    def _sum(self) -> Iterator[str]:
        """A marginal throughput that is not that of the rates; what a difference loses is relative to the rates."""
        rates = [(claimed.rate_mbps, chain.slo.t_min_mbps) for chain, claimed in self.placed]
        marginal, stated = (
            sum((rate - least for rate, least in rates), Fraction(0)),
            self.certificate.plan.marginal_mbps,
        )
        if stated is None or abs(marginal - stated) > LIMIT_TOLERANCE * max(
            sum(rate for rate, _ in rates), Fraction(1)
        ):
            said = "not given" if stated is None else f"not {float(stated):g}"
            yield f"plan: the marginal throughput is {float(marginal):g} Mbps, {said}"
