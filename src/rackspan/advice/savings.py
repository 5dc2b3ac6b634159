"""Advice that keeps bytes in their rack: today's flows beside those with other settings, assignments, replicas or leaders.

    brokers that select replicas by rack
    of each group:  client.rack ──► gateways' rack ──► another assignor or strategy
    of each topic:  a replica in each rack ──► fewer replicas ──► leaders held in racks

Each is computed where it is printed: it is compared with what all before it leave, so that no byte is saved twice and the list
can be followed from its top to any line. What saves less than a threshold, and what the planner refuses or the audit finds
fault with afterwards, is left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from rackspan.advice.advice import Advice
from rackspan.advice.measured import LEAST_BYTES_A_MONTH, MeasuredTraffic, Terms
from rackspan.advice.of_groups import NO_SELECTOR, ReadingGroup, directs_to_leaders, group_savings, selector_saving
from rackspan.advice.of_topics import PassingTopic, passing_topics, topic_savings
from rackspan.audit import RackPolicy
from rackspan.clients import ClientFinding
from rackspan.model import ClusterSnapshot
from rackspan.traffic import PriceFile

Worth: TypeAlias = tuple[bool, float, int, str, str, str]


@dataclass(frozen=True, slots=True, eq=False)
class _Chain:
    """Advice about one group or topic, each on top of the one before. `after`: the chains whose effects its figures rest on.

    `of_brokers`: it changes what every group reads.
    """

    advice: Sequence[Advice]
    after: Sequence["_Chain"] = ()
    of_brokers: bool = False

    @property
    def worth(self) -> Worth:
        """The key by which the largest sum of money comes first, then of bytes; what has no price comes last."""
        first = self.advice[0]
        money = [each.money_a_month for each in self.advice]
        return (
            None in money,
            -sum(each or 0 for each in money),
            -sum(each.bytes_a_month or 0 for each in self.advice),
            first.kind,
            first.topic or "",
            first.group or "",
        )


def savings(
    traffic: MeasuredTraffic,
    findings: Sequence[ClientFinding],
    policy: RackPolicy = RackPolicy(),
    prices: PriceFile | None = None,
    least_bytes_a_month: int = LEAST_BYTES_A_MONTH,
) -> list[Advice]:
    """In the order in which to follow it: the group or topic with the largest saving, after those that it rests on.

    `findings` are those of the groups in `traffic`.
    """
    terms = Terms(traffic.seconds, prices, least_bytes_a_month)
    groups, settings = _settings(traffic, findings, terms)
    topics = passing_topics(traffic, policy, groups, terms)
    chains = _in_order(traffic.snapshot, settings, topics, terms)
    every = (advice for chain in chains for advice in chain.advice)
    return [replace(advice, place=place) for place, advice in enumerate(every)]


def _settings(
    traffic: MeasuredTraffic, findings: Sequence[ClientFinding], terms: Terms
) -> tuple[list[ReadingGroup], list[_Chain]]:
    """The groups as they read once all advice about settings is followed, and that advice.

    Brokers are changed once, for all groups, and before what rests on it: by itself, or with the group that saves most by it.
    """
    groups = [ReadingGroup(reads, traffic.selectors) for reads in traffic.reads]
    of_group = [[each for each in findings if each.group == group.id] for group in groups]
    brokers: list[_Chain] = []
    of_brokers = selector_saving(traffic, groups, findings, terms)
    if of_brokers is not None:
        advice, groups = of_brokers
        brokers = [_Chain((advice,), of_brokers=True)]
        of_group = [[each for each in found if each.cause != NO_SELECTOR] for found in of_group]
    found = [group_savings(traffic, groups, at, of_group[at], terms) for at in range(len(groups))]
    selecting = [
        at for at, (_, then) in enumerate(found) if directs_to_leaders(groups[at]) and not directs_to_leaders(then[at])
    ]
    settled: dict[int, _Chain] = {}
    if selecting:
        first = min(selecting, key=lambda at: _Chain(found[at][0]).worth)
        advised, groups = found[first]
        brokers = [_Chain(advised, of_brokers=True)]
        settled = {first: brokers[0]}
        found = [
            (advised, groups) if at == first else group_savings(traffic, groups, at, of_group[at], terms)
            for at in range(len(groups))
        ]
    chains = [settled.get(at) or _Chain(advised, brokers) for at, (advised, _) in enumerate(found) if advised]
    chains += [chain for chain in brokers if chain not in chains]
    return [then[at] for at, (_, then) in enumerate(found)], chains


def _in_order(
    cluster: ClusterSnapshot, settings: Sequence[_Chain], topics: Iterator[PassingTopic], terms: Terms
) -> Iterator[_Chain]:
    """The chain of the largest worth first, after those that it rests on.

    A topic is estimated by itself. Where its replicas end depends on the loads of the topics that are planned before it, so
    it is computed again when its turn comes, and waits if another is worth more then.
    """
    of_brokers = [chain for chain in settings if chain.of_brokers]
    of_group: dict[str | None, list[_Chain]] = {}
    for chain in settings:
        of_group.setdefault(chain.advice[0].group, []).append(chain)
    waiting: list[tuple[Worth, int, _Chain, PassingTopic | None, ClusterSnapshot | None]] = [
        (chain.worth, number, chain, None, None) for number, chain in enumerate(settings)
    ]
    for topic in topics:
        advised, _ = topic_savings(replace(topic, cluster=topic.snapshot), terms)
        if advised:
            rests_on = [chain for group in topic.groups for chain in (*of_brokers, *of_group.get(group.id, ()))]
            chain = _Chain(advised, rests_on)
            waiting.append((chain.worth, len(waiting), chain, topic, None))
    heapify(waiting)
    printed = set[_Chain]()
    while waiting:
        _, number, chain, of_topic, computed_in = heappop(waiting)
        if of_topic is not None:
            advised, changed = topic_savings(replace(of_topic, cluster=cluster), terms)
            if not advised:
                continue
            chain = replace(chain, advice=advised)
            if computed_in is not cluster and waiting and chain.worth > waiting[0][0]:
                heappush(waiting, (chain.worth, number, chain, of_topic, cluster))
                continue
            cluster = changed.cluster
        yield from _with_those_before(chain, printed)


def _with_those_before(chain: _Chain, printed: set[_Chain]) -> Iterator[_Chain]:
    if chain not in printed:
        printed.add(chain)
        for before in sorted(chain.after, key=lambda each: each.worth):
            yield from _with_those_before(before, printed)
        yield chain
