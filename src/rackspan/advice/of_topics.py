"""What would pass between racks with a topic's replicas or leaders elsewhere: each judged by the plan that would do it."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from rackspan.advice.advice import Advice
from rackspan.advice.measured import MeasuredTraffic, Remedy, Terms, saving
from rackspan.advice.of_groups import ReadingGroup
from rackspan.audit import RackPolicy, Severity, audit, requirements
from rackspan.audit.policy import LEADER_RACKS, Survive
from rackspan.clients import GroupReads
from rackspan.clients.reads import read_again
from rackspan.errors import UsageError
from rackspan.model import NO_BROKER, UNKNOWN_SIZE, ClusterSnapshot, RackId, lengths, unpadded
from rackspan.reassign import ReassignmentPlan, ReassignmentRequest, plan, snapshot_after
from rackspan.text import count_noun, human_bytes
from rackspan.traffic import GroupProgress, TrafficFlow, Volumes, consume_flows, replication_flows
from rackspan.traffic.what_if import produced_with_leaders_of

FEWEST_COPIES = 2
"""No advice leaves one copy of a record."""

NOTHING_COPIED = "nothing is copied"

_UNDO = "rackspan reassign undo, with the journal of the run"


@dataclass(frozen=True, slots=True, eq=False)
class PassingTopic:
    """One topic as it is or would be: `cluster` has every topic, `snapshot` no other.

    `produced` are the flows of its producers, `groups` those that read it.
    """

    cluster: ClusterSnapshot
    snapshot: ClusterSnapshot
    policy: RackPolicy
    volumes: Volumes
    produced: tuple[TrafficFlow, ...]
    groups: tuple[ReadingGroup, ...]
    progress: GroupProgress

    @property
    def name(self) -> str:
        return str(self.snapshot.topics[0].name)

    @property
    def pattern(self) -> str:
        """The topic for `--topic`: a regular expression, in which of the characters of a name only the full stop has a meaning."""
        return self.name.replace(".", r"\.")

    @property
    def racks(self) -> list[RackId]:
        return sorted({broker.rack for broker in self.snapshot.brokers if broker.rack})

    @property
    def factors(self) -> tuple[int, int]:
        """The least and the greatest number of replicas of a partition."""
        found = lengths(self.snapshot.partitions.replicas)
        return int(found.min()), int(found.max())

    @property
    def is_in_every_rack(self) -> bool:
        rack_of = {int(broker.id): broker.rack for broker in self.snapshot.brokers}
        return all(
            {rack_of.get(int(broker)) for broker in unpadded(replicas)}.issuperset(self.racks)
            for replicas in self.snapshot.partitions.replicas
        )

    def flows(self) -> list[TrafficFlow]:
        """What passes: each replica copies once what its leader receives."""
        return _flows(self.snapshot, self.volumes, self.produced, self.groups, self.progress)

    def planned(
        self, request: ReassignmentRequest, policy: RackPolicy | None = None
    ) -> tuple[ReassignmentPlan, "PassingTopic"] | None:
        """The plan of a request in full and the topic after it; None if the planner refuses a part, or the audit finds more afterwards.

        The topic alone is enough to see what is refused, and fast. Where replicas end depends on the loads of all topics.
        """
        policy = policy or self.policy
        found = plan_in_full(self.snapshot, policy, request)
        alone = self.cluster is self.snapshot
        if found is not None and not alone:
            found = plan_in_full(self.cluster, policy, request)
        if found is None:
            return None
        cluster = snapshot_after(self.cluster, found)
        after = cluster if alone else only_topics(cluster, {self.name})
        if _violations(after, policy) - _violations(self.snapshot, self.policy):
            return None
        return found, replace(self.placed_as(after), cluster=cluster, policy=policy)

    def led_in(self, racks: Sequence[RackId]) -> "PassingTopic":
        """The topic with each partition led in the first of these racks that has a replica in sync, as far as one has."""
        rack_of = {int(broker.id): broker.rack for broker in self.snapshot.brokers}
        leader = self.snapshot.partitions.leader.copy()
        for row, in_sync in enumerate(self.snapshot.partitions.isr):
            held = {rack_of.get(broker): broker for broker in (leader[row], *unpadded(in_sync))[::-1]}
            leader[row] = next((held[rack] for rack in racks if rack in held), leader[row])
        return self.placed_as(replace(self.snapshot, partitions=replace(self.snapshot.partitions, leader=leader)))

    def placed_as(self, after: ClusterSnapshot) -> "PassingTopic":
        """The topic with the replicas and leaders of this snapshot of it."""
        return replace(
            self,
            snapshot=after,
            produced=tuple(produced_with_leaders_of(self.produced, self.volumes.bytes_in, self.snapshot, after)),
            groups=tuple(
                replace(group, reads=read_again(group.reads, after, group.selectors)) for group in self.groups
            ),
        )


def plan_in_full(
    snapshot: ClusterSnapshot, policy: RackPolicy, request: ReassignmentRequest
) -> ReassignmentPlan | None:
    """The plan of a request; None if it changes nothing, or the planner refuses a part."""
    try:
        found = plan(snapshot, policy, request)
    except UsageError:
        return None
    return None if found.cost is None or found.infeasible or not len(found) else found


def only_topics(snapshot: ClusterSnapshot, topics: Collection[str]) -> ClusterSnapshot:
    """The snapshot with some of its topics."""
    codes = np.array([code for code, each in enumerate(snapshot.topics) if each.name in topics], np.int32)
    firsts, ends = (np.searchsorted(snapshot.partitions.topic, edges) for edges in (codes, codes + 1))
    held = np.concatenate([np.arange(first, end) for first, end in zip(firsts, ends, strict=True)])
    return replace(
        snapshot,
        topics=tuple(snapshot.topics[code] for code in codes.tolist()),
        partitions=replace(
            snapshot.partitions.take(held), topic=np.repeat(np.arange(len(codes), dtype=np.int32), ends - firsts)
        ),
    )


def _violations(snapshot: ClusterSnapshot, policy: RackPolicy) -> Counter[str]:
    """By constraint. A warning may follow from what is better: more replicas make min.insync.replicas of 1 worth one."""
    counts = audit(snapshot, policy).counts
    return Counter(
        {constraint: count for (severity, constraint), count in counts.items() if severity is Severity.VIOLATION}
    )


def topic_savings(topic: PassingTopic, terms: Terms) -> tuple[list[Advice], PassingTopic]:
    """The advice about one topic, each on top of the one before, and the topic once all of it is followed."""
    advised: list[Advice] = []
    for remedies in (_replica_in_each_rack, _fewer_replicas, _leaders_in_racks):
        now = topic.flows()
        for remedy, changed in remedies(topic):
            advice = saving(remedy, now, changed.flows(), terms)
            if advice is not None:
                advised.append(advice)
                topic = changed
                break
    return advised, topic


def _replica_in_each_rack(topic: PassingTopic) -> Iterator[tuple[Remedy, PassingTopic]]:
    """What the further copies cross racks with counts against it."""
    if not any(
        member.rack in topic.racks and member.rack not in read.replicas
        for group in topic.groups
        for member in group.reads.members
        for read in member.reads
    ):
        return
    least, most = topic.factors
    factor = max(len(topic.racks), most)
    more = factor > least
    found = topic.planned(ReassignmentRequest(topics=topic.pattern, replication_factor=factor if more else None))
    if found is None:
        return
    planned, changed = found
    yield (
        Remedy(
            kind="replica-in-rack",
            reason=f"{topic.name} is read in racks that have no replica of it",
            command=f"rackspan reassign plan --topic '{topic.pattern}'{f' --replication-factor {factor}' if more else ''}",
            cost=copied(planned),
            undo=_UNDO,
            topic=topic.name,
        ),
        changed,
    )


def _leaders_in_racks(topic: PassingTopic) -> Iterator[tuple[Remedy, PassingTopic]]:
    """The best `leader.racks` of two racks, which order three completely; of one where every partition is in every rack.

    An operator's own list stays as it is.
    """
    if (
        topic.name in topic.policy.topic_leader_racks
        or topic.factors[1] < FEWEST_COPIES
        or not topic.groups + topic.produced
        or not topic.racks
    ):
        return
    # Of a partition without a replica in the listed racks the planner may move the leader anywhere.
    lists = permutations(topic.racks, 1 if topic.is_in_every_rack else min(2, len(topic.racks)))
    racks = min(lists, key=lambda each: (_across(topic.led_in(each)), each))
    if _across(topic.led_in(racks)) >= _across(topic):
        return
    policy = replace(topic.policy, topic_leader_racks={**topic.policy.topic_leader_racks, topic.name: racks})
    found = topic.planned(ReassignmentRequest(topics=topic.pattern, leaders=True), policy)
    if found is None:
        return
    planned_reordering, changed = found
    partitions = len(planned_reordering.by_partition)
    led = int((changed.snapshot.partitions.leader != NO_BROKER).sum())
    where = ", ".join(f'"{rack}"' for rack in racks)
    yield (
        Remedy(
            kind="leaders-in-racks",
            reason=f"{topic.name} is written or read from leaders mostly in {racks[0]}",
            command=(
                f'set {LEADER_RACKS} = [{where}] in [topics."{topic.name}"] of rackspan.toml; '
                f"rackspan reassign plan --leaders --topic '{topic.pattern}'"
            ),
            cost=f"nothing is copied; {count_noun(partitions, 'leader', ',')} of {led:,} move, and brokers there serve what they lead",
            undo=f"take {LEADER_RACKS} back; {_UNDO}",
            topic=topic.name,
        ),
        changed,
    )


def _across(topic: PassingTopic) -> int:
    return _by_topic_across(topic.flows()).total()


def _by_topic_across(flows: Iterable[TrafficFlow]) -> Counter[str]:
    across = Counter[str]()
    for flow in flows:
        if flow.link.crosses:
            across[flow.link.topic] += flow.size_bytes or 0
    return across


def _flows(
    snapshot: ClusterSnapshot,
    volumes: Volumes,
    produced: Sequence[TrafficFlow],
    groups: Sequence[ReadingGroup],
    progress: GroupProgress,
) -> list[TrafficFlow]:
    copied = np.repeat(volumes.bytes_in[:, None], snapshot.partitions.replicas.shape[1], axis=1)
    none = np.zeros(copied.shape, np.bool_)
    volumes = replace(volumes, copied=copied, from_own_log=none, added=none)
    return [
        *produced,
        *replication_flows(snapshot, volumes),
        *consume_flows(snapshot, volumes, [group.reads for group in groups], progress),
    ]


def _fewer_replicas(topic: PassingTopic) -> Iterator[tuple[Remedy, PassingTopic]]:
    """The fewest replicas first, one more at least than min.insync.replicas: else the loss of any broker would stop writes.

    Fewer racks only where the policy does not require to survive the loss of one.
    """
    required = requirements(topic.snapshot.topics, topic.policy).of(topic.snapshot.partitions.topic[:1])
    if not required.known[0]:
        # It may be as large as the replication factor.
        return
    in_sync = int(required.min_insync_replicas[0])
    fewer_racks = topic.policy.survive_of(topic.name) is not Survive.RACK
    for factor in range(max(FEWEST_COPIES, in_sync + 1), topic.factors[1]):
        request = ReassignmentRequest(topics=topic.pattern, replication_factor=factor, allow_fewer_racks=fewer_racks)
        found = topic.planned(request)
        if found is None:
            continue
        planned, changed = found
        flag = " --allow-fewer-racks" if fewer_racks else ""
        yield (
            Remedy(
                kind="lower-factor",
                reason=f"{topic.name} has {topic.factors[1]} replicas; the policy asks for no more than {factor} keep",
                command=f"rackspan reassign plan --topic '{topic.pattern}' --replication-factor {factor}{flag}",
                cost=copied(planned),
                undo=f"{_UNDO}, which copies the replicas again",
                topic=topic.name,
            ),
            changed,
        )


def copied(planned: ReassignmentPlan) -> str:
    """What a plan copies, in words."""
    cost = planned.cost
    return NOTHING_COPIED if cost is None else replicas_copied(planned.moves, cost.bytes, cost.unsized_moves)


def replicas_copied(replicas: int, known_bytes: int, unsized: int) -> str:
    """The same of a number of replicas, `unsized` of which have no known size."""
    if not replicas:
        return NOTHING_COPIED
    size = "of unknown size" if unsized else human_bytes(known_bytes)
    return f"{count_noun(replicas, 'replica', ',')} copied once, {size}"


def passing_topics(
    traffic: MeasuredTraffic, policy: RackPolicy, groups: Sequence[ReadingGroup], terms: Terms
) -> Iterator[PassingTopic]:
    """Every topic of which enough crosses racks, whose bytes in are known, that is not Kafka's own and not being reassigned."""
    rows = traffic.snapshot.partitions
    flows = _flows(traffic.snapshot, traffic.volumes, traffic.produced, groups, traffic.progress)
    across = _by_topic_across(flows)
    readers = _by_topic(groups)
    produced: dict[str, list[TrafficFlow]] = {}
    for flow in traffic.produced:
        produced.setdefault(flow.link.topic, []).append(flow)
    ends = np.searchsorted(rows.topic, np.arange(len(traffic.snapshot.topics) + 1))
    for code, topic in enumerate(traffic.snapshot.topics):
        chosen = np.arange(ends[code], ends[code + 1])
        sizes = traffic.volumes.bytes_in[chosen]
        moving = rows.adding_replicas[chosen] != NO_BROKER
        if topic.internal or not len(chosen) or (sizes == UNKNOWN_SIZE).any() or not sizes.any() or moving.any():
            continue
        name = str(topic.name)
        if not terms.are_enough(across[name]):
            continue
        yield PassingTopic(
            traffic.snapshot,
            only_topics(traffic.snapshot, {name}),
            policy,
            _volumes_of(traffic.volumes, chosen),
            tuple(produced.get(name, ())),
            tuple(readers.get(name, ())),
            traffic.progress,
        )


def _volumes_of(volumes: Volumes, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Volumes:
    return Volumes(
        volumes.bytes_in[rows],
        volumes.guessed[rows],
        volumes.records[rows],
        volumes.record_bytes[rows],
        volumes.copied[rows],
        volumes.from_own_log[rows],
        volumes.added[rows],
    )


def _by_topic(groups: Sequence[ReadingGroup]) -> dict[str, list[ReadingGroup]]:
    """Each group once for each topic that it reads, with what it reads of that topic."""
    found: dict[str, list[ReadingGroup]] = {}
    for group in groups:
        topics = {read.partition.topic for member in group.reads.members for read in member.reads}
        for topic in topics:
            found.setdefault(topic, []).append(replace(group, reads=_of_topic(group.reads, topic)))
    return found


def _of_topic(reads: GroupReads, topic: str) -> GroupReads:
    return replace(
        reads,
        members=tuple(
            replace(member, reads=kept)
            for member in reads.members
            if (kept := tuple(read for read in member.reads if read.partition.topic == topic))
        ),
    )
