"""A reading of all that changes in a cluster all the time, and the flows between two readings in succession."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from rackspan.clients import GroupReads, ReplicaSelectors, group_reads
from rackspan.model import ClusterSnapshot
from rackspan.model.client_networks import ClientNetworks
from rackspan.model.group import GroupDescription
from rackspan.model.snapshot import known_until
from rackspan.traffic.flows import TrafficFlow, consume_flows, produce_flows, replication_flows
from rackspan.traffic.followers import BrokerBytes, bytes_out_between, follower_bounds
from rackspan.traffic.logs import ClusterLogs, Volumes, volumes_between
from rackspan.traffic.measured import CountedBytes, CountedFlow, measured_flows, produced_flows, since
from rackspan.traffic.progress import GroupProgress, group_progress
from rackspan.traffic.restores import restore_flows


@dataclass(frozen=True, slots=True, eq=False)
class ClusterReading:
    """One reading. `counters` has what each gateway counted since it started, by the URL of its metrics, and `bytes_out` what brokers did.

    `period_seconds` is how often its collector reads, and `partial` says in words what could not be read.
    """

    logs: ClusterLogs
    groups: tuple[GroupDescription, ...] = ()
    selectors: Mapping[int, ReplicaSelectors] = field(default_factory=dict)
    counters: Mapping[str, CountedBytes] = field(default_factory=dict)
    period_seconds: float = 60.0
    partial: tuple[str, ...] = ()
    bytes_out: BrokerBytes = field(default_factory=dict)

    @property
    def snapshot(self) -> ClusterSnapshot:
        return self.logs.snapshot

    @property
    def read_at(self) -> datetime:
        return self.logs.read_at

    def of_snapshot(self, snapshot: ClusterSnapshot) -> "ClusterReading":
        """The same reading with other racks in its snapshot, as from a rack locator."""
        return replace(self, logs=replace(self.logs, snapshot=snapshot))


@dataclass(frozen=True, eq=False)
class Interval:
    """What passed between two readings of a cluster. `networks`: where clients are, by their addresses."""

    before: ClusterReading
    after: ClusterReading
    networks: ClientNetworks | None = None

    @property
    def seconds(self) -> float:
        return (self.after.read_at - self.before.read_at).total_seconds()

    @property
    def is_gap(self) -> bool:
        """Whether the second reading came so late that nothing is known of the time between."""
        return self.after.read_at > known_until(self.before.read_at, self.before.period_seconds)

    @property
    def unread(self) -> tuple[str, ...]:
        """A line for each part that could not be read, in either reading."""
        return tuple(dict.fromkeys((*self.before.partial, *self.after.partial)))

    @cached_property
    def counted(self) -> CountedBytes:
        """What gateways counted."""
        return counted_between(self.before.counters, self.after.counters)

    @cached_property
    def volumes(self) -> Volumes:
        return volumes_between(self.before.logs, self.after.logs)

    @cached_property
    def progress(self) -> GroupProgress:
        return group_progress(self.before.logs, self.after.logs, self.volumes)

    @cached_property
    def reads(self) -> tuple[GroupReads, ...]:
        """The groups with members at the second reading."""
        return reads_of(self.after.snapshot, self.after.groups, self.after.selectors, self.networks)

    @cached_property
    def flows(self) -> tuple[TrafficFlow, ...]:
        """The flows of every path: what gateways counted, and the rest as derived, estimated or a lower bound."""
        before, after = self.before, self.after
        measured = [measured_flows(group, after.groups, self.counted) for group in self.reads]
        flows = (
            *produced_flows(produce_flows(after.snapshot, self.volumes), self.counted),
            *replication_flows(after.snapshot, self.volumes),
            *consume_flows(after.snapshot, self.volumes, [left for _, left in measured], self.progress),
            *(flow for found, _ in measured for flow in found),
        )
        sent = bytes_out_between(before.bytes_out, after.bytes_out)
        bounds = follower_bounds(before.snapshot, after.snapshot, sent, after.selectors, flows)
        groups = before.groups, after.groups
        return *flows, *bounds, *restore_flows(before.logs, after.logs, *groups, after.selectors, self.networks)


def reads_of(
    snapshot: ClusterSnapshot,
    groups: Sequence[GroupDescription],
    selectors: Mapping[int, ReplicaSelectors],
    networks: ClientNetworks | None = None,
) -> tuple[GroupReads, ...]:
    """What each group with members reads."""
    return tuple(group_reads(group, snapshot, selectors, networks) for group in groups if group.members)


def counted_between(before: Mapping[str, CountedBytes], after: Mapping[str, CountedBytes]) -> CountedBytes:
    """What gateways counted between two readings of their counters. One that only the second has started in between, or was not read:
    nothing is known of it. A counter that went back counts from zero, since its gateway was restarted.
    """
    passed = Counter[CountedFlow]()
    for gateway in before.keys() & after.keys():
        passed.update(since(before[gateway], after[gateway]))
    return passed
