"""A lower bound of what consumers read from followers, by the bytes out that brokers count for each topic.

Kafka has no metric of follower fetching. `BytesOutPerSec` of a topic counts what a broker sends to consumers, and not what it sends to
followers; so of a broker that leads none of the topic's partitions it counts reads from followers only. Once each broker leads
one, nothing is known. Source: BrokerTopicMetrics.updateBytesOut of Kafka.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from rackspan.clients import ReplicaSelectors
from rackspan.model import ClusterSnapshot, RackId
from rackspan.traffic.flows import Basis, Link, TrafficFlow, TrafficPath
from rackspan.traffic.measured import since

BrokerBytes: TypeAlias = Mapping[int, Mapping[str, int]]
"""Bytes out to consumers by broker and topic."""

SENT_BY_FOLLOWERS: Final = (
    "brokers that lead none of the topic's partitions, at either reading or in between, sent at least as much, to consumers that "
    "name their rack"
)
LESS_OF_GROUPS: Final = "less what rows of groups have of it"


def bytes_out_between(before: BrokerBytes, after: BrokerBytes) -> BrokerBytes:
    """What brokers sent between two readings of their counters; nothing is known of one that either of them lacks."""
    return {broker: since(before[broker], after[broker]) for broker in before.keys() & after.keys()}


def follower_bounds(
    before: ClusterSnapshot,
    after: ClusterSnapshot,
    bytes_out: BrokerBytes,
    selectors: Mapping[int, ReplicaSelectors],
    known: Sequence[TrafficFlow],
) -> tuple[TrafficFlow, ...]:
    """What brokers sent, as followers, of topics all of whose leaders select replicas by rack, and `known` rows do not have.

    A reader is then sent to a follower in the rack that it names, so that the bytes stay there. Brokers that lead a partition of the topic at
    either reading are left out; of one that led in between nothing is known, which is the assumption.
    """
    leading = {*_leading(before), *_leading(after)}
    leaders: dict[str, set[int]] = {}
    for broker, topic in _leading(after):
        leaders.setdefault(topic, set()).add(broker)
    racks = {int(broker.id): broker.rack for broker in after.brokers}
    sent = Counter[tuple[str, RackId]]()
    for broker, by_topic in bytes_out.items():
        rack = racks.get(broker)
        for topic, size in by_topic.items():
            by_rack = {selectors.get(leader) for leader in leaders.get(topic, ())} == {ReplicaSelectors.RACK_AWARE}
            # No reader is sent to a broker without a rack, which therefore adds nothing to the bound.
            if by_rack and rack is not None and (broker, topic) not in leading:
                sent[topic, rack] += size
    of_groups = Counter[tuple[str, RackId | None]]()
    for flow in known:
        if flow.link.path is TrafficPath.FOLLOWER_FETCH:
            of_groups[flow.link.topic, flow.link.source_rack] += flow.size_bytes or 0
    return tuple(
        TrafficFlow(_link(topic, rack, less=bool(of_groups[topic, rack])), size - of_groups[topic, rack])
        for (topic, rack), size in sorted(sent.items())
        if size > of_groups[topic, rack]
    )


def _link(topic: str, rack: RackId, *, less: bool) -> Link:
    assumption = f"{SENT_BY_FOLLOWERS}; {LESS_OF_GROUPS}" if less else SENT_BY_FOLLOWERS
    return Link(TrafficPath.FOLLOWER_FETCH, topic, None, rack, rack, Basis.DERIVED_LOWER_BOUND, assumption)


def _leading(snapshot: ClusterSnapshot) -> Iterator[tuple[int, str]]:
    """Each leader with each topic of which it leads a partition."""
    names = [str(topic.name) for topic in snapshot.topics]
    rows = snapshot.partitions
    for leader, topic in {*zip(rows.leader.tolist(), rows.topic.tolist(), strict=True)}:
        if leader >= 0:
            yield leader, names[topic]
