"""A batch of partitions, what is required of each, and the brokers and racks of their cluster: the input of every constraint.

A batch is a whole snapshot for `rackspan audit` and one Arrow batch in Spark; constraints treat both alike. Columns that
several constraints use (rack codes, counts) are computed here, once, when first read.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from rackspan.audit.findings import Remedy
from rackspan.audit.policy import SURVIVE_CODES, RackPolicy
from rackspan.audit.survival import WorstLoss, worst_loss
from rackspan.model import (
    MIN_INSYNC_RACKS,
    MIN_INSYNC_REPLICAS,
    NO_BROKER,
    Bools,
    Broker,
    ClusterSnapshot,
    Controller,
    Int32s,
    Int64s,
    Partition,
    PartitionColumns,
    RackId,
    RackMap,
    Topic,
    UnrackedPolicy,
    any_in_row,
    count_in_row,
    counts_descending,
    distinct_racks,
    even_shares,
    even_spread,
    forcing_value,
    lengths,
    rack_map,
)
from rackspan.model.ids import UNKNOWN_LEADER, UNNAMED_RACK
from rackspan.model.partitions import listed_in
from rackspan.model.rack_names import AlikeRacks, racks_alike
from rackspan.model.topic import FOLLOWER_REPLICAS, LEADER_REPLICAS, UNCLEAN_LEADER_ELECTION


@dataclass(frozen=True)
class ClusterMembers:
    """The brokers and controllers of a cluster, with the policy that says how racks are counted."""

    brokers: tuple[Broker, ...]
    controllers: tuple[Controller, ...]
    policy: RackPolicy

    def __post_init__(self) -> None:
        # A policy that allows no broker without a rack refuses the cluster here, once.
        _ = self.rack_map

    @cached_property
    def rack_map(self) -> RackMap:
        return rack_map(self.brokers, self.policy.unracked)

    @cached_property
    def usable(self) -> Bools:
        """Which brokers can lead and follow, in the order of `rack_map.broker_ids`; a last False is read by index −1."""
        in_order = sorted(self.brokers, key=lambda broker: broker.id)
        return np.array([*(not broker.fenced for broker in in_order), False], dtype=np.bool_)

    @cached_property
    def alive(self) -> frozenset[int]:
        """The ids of the brokers that can lead and follow."""
        return frozenset(int(broker.id) for broker in self.brokers if not broker.fenced)

    @cached_property
    def listed(self) -> frozenset[int]:
        """The ids of all brokers."""
        return frozenset(int(broker.id) for broker in self.brokers)

    @cached_property
    def excluded(self) -> Bools:
        """Which brokers get nothing new, in the order of `rack_map.broker_ids`."""
        return np.isin(self.rack_map.broker_ids, list(self.excluded_ids))

    @cached_property
    def cordoned(self) -> frozenset[int]:
        """The brokers all of whose log directories are cordoned."""
        return frozenset(int(broker.id) for broker in self.brokers if broker.cordoned)

    @cached_property
    def excluded_ids(self) -> frozenset[int]:
        """The brokers that get nothing new."""
        return self.policy.excluded_of(self.brokers)

    @cached_property
    def receiving(self) -> Bools:
        """Which brokers can get a replica, in the order of `rack_map.broker_ids`: neither fenced nor excluded."""
        return np.asarray(self.usable[:-1] & ~self.excluded)

    @cached_property
    def every_one_receives(self) -> bool:
        """Whether no broker is fenced or excluded."""
        return bool(self.receiving.all())

    @cached_property
    def planned_racks(self) -> RackMap:
        """The racks that plans spread replicas over: where no broker counts in one, all brokers are in the same."""
        return self.rack_map if self.rack_map.racks else rack_map(self.brokers, UnrackedPolicy.SHARED)

    @cached_property
    def open_rack_map(self) -> RackMap:
        """The brokers that are not excluded; all of them where every one is."""
        left = [broker for broker in self.brokers if broker.id not in self.excluded_ids]
        return rack_map(left, self.policy.unracked) if left else self.rack_map

    def spread_without(self, brokers: Collection[int], replication_factor: int) -> bool:
        """Whether the brokers that can receive replicas, without these, have racks for as even a spread as there is with all."""
        able = [
            broker for broker in self.brokers if not broker.fenced and broker.id not in {*brokers, *self.excluded_ids}
        ]
        left = rack_map(able, self.policy.unracked).sizes if able else np.zeros(0, dtype=np.int64)
        sizes = tuple(left.tolist()) or (len(able),)
        return [count for count in even_spread(sizes, replication_factor) if count] == [
            count for count in self.even_counts(replication_factor) if count
        ]

    @cached_property
    def controllers_only(self) -> frozenset[int]:
        """Fenced brokers whose processes are alive as controllers: they may be brokers no more."""
        alive = {int(controller.id) for controller in self.controllers if controller.alive}
        return frozenset(int(broker.id) for broker in self.brokers if broker.fenced) & alive

    @cached_property
    def voter_racks(self) -> dict[int, RackId | None]:
        """Rack of each voter: that of the broker in the same process, else the policy's, else the snapshot's."""
        broker_racks = {int(broker.id): broker.rack for broker in self.brokers}
        voters = [(int(controller.id), controller.rack) for controller in self.controllers if controller.voter]
        return {
            voter: broker_racks.get(voter) or self.policy.controller_racks.get(voter) or rack for voter, rack in voters
        }

    @cached_property
    def racks_alike(self) -> tuple[AlikeRacks, ...]:
        """Names of racks that may be fewer racks than they count as, but for those that the policy says are different."""
        return tuple(group for group in self._look_alikes if not self.policy.declares_different(group.names))

    @cached_property
    def racks_declared_different(self) -> tuple[AlikeRacks, ...]:
        """Those that the policy says are different racks."""
        return tuple(group for group in self._look_alikes if self.policy.declares_different(group.names))

    @cached_property
    def _look_alikes(self) -> tuple[AlikeRacks, ...]:
        return racks_alike([broker.rack for broker in self.brokers] + list(self.voter_racks.values()))

    @cached_property
    def dead_voters(self) -> frozenset[int]:
        """The voters that are lost already: not alive, or where that is not known, in the process of a fenced broker.

        A broker and a controller of one id are one process. Of a voter that is no broker nothing else is known.
        """
        fenced = {int(broker.id) for broker in self.brokers if broker.fenced}
        voters = (controller for controller in self.controllers if controller.voter)
        return frozenset(
            int(voter.id)
            for voter in voters
            if voter.alive is False or (voter.alive is None and int(voter.id) in fenced)
        )

    @cached_property
    def on_one_machine(self) -> bool:
        """Whether every broker listens on a loopback address: a test cluster, whose racks one machine simulates."""
        return all(broker.on_loopback for broker in self.brokers)

    @cached_property
    def rack_sizes(self) -> tuple[int, ...]:
        """Brokers in each of `planned_racks`."""
        return tuple(self.planned_racks.sizes.tolist())

    @cached_property
    def failure_racks(self) -> tuple[RackId, ...]:
        """Every rack that can be lost: the racks of brokers, and racks that hold only controllers."""
        return tuple(sorted({*self.rack_map.racks, *(rack for rack in self.voter_racks.values() if rack)}))

    @cached_property
    def racks_down(self) -> tuple[RackId, ...]:
        """The racks that are lost already, by name: no broker that counts in one is up; of racks without brokers no voter is."""
        with_brokers = set(self.rack_map.racks)
        up = {rack for broker, rack in self.rack_map.rack_of.items() if broker in self.alive}
        up |= {
            rack
            for voter, rack in self.voter_racks.items()
            if rack and rack not in with_brokers and voter not in self.dead_voters
        }
        return tuple(rack for rack in self.failure_racks if rack not in up)

    @cached_property
    def down_with_rack(self) -> dict[int, RackId]:
        """The named rack of each broker and dead voter that is down with all others of it: they come back together."""
        down: dict[RackId, set[int]] = {rack: set() for rack in self.racks_down if rack != UNNAMED_RACK}
        dead = ((voter, self.voter_racks[voter]) for voter in self.dead_voters)
        for member, rack in (*self.rack_map.rack_of.items(), *dead):
            if rack in down:
                down[rack].add(member)
        return {member: rack for rack, together in down.items() if len(together) > 1 for member in together}

    def even_counts(self, replication_factor: int) -> tuple[int, ...]:
        """The most even spread of that many replicas over the racks, fullest first."""
        known = self._even_counts
        if replication_factor not in known:
            known[replication_factor] = even_spread(self.rack_map.sizes, replication_factor)
        return known[replication_factor]

    @cached_property
    def _even_counts(self) -> dict[int, tuple[int, ...]]:
        return {}

    def even_shares(self, replication_factor: int) -> tuple[Int64s, Int64s]:
        """The fewest and the most of that many replicas that an even spread puts into each of `planned_racks`. Shape (racks,)."""
        known = self._even_shares
        if replication_factor not in known:
            known[replication_factor] = even_shares(self.planned_racks.sizes, replication_factor)
        return known[replication_factor]

    @cached_property
    def _even_shares(self) -> dict[int, tuple[Int64s, Int64s]]:
        return {}


@dataclass(frozen=True)
class Requirements:
    """The minimums required in sync, and configs that weaken them, one entry a topic code (or, after `of`, one entry a partition).

    `left_alone`: the policy leaves the placement of the topic as it is. `diskless`: brokers hold no data of it. `enforced`: the brokers themselves enforce `min_insync_racks`; otherwise only the policy requires it. `survive`: the
    loss to survive, its index in SURVIVE_CODES. `known`: the snapshot has min.insync.replicas of the topic; else it is
    judged as 1. `unclean_election`, `leader_throttles` and `follower_throttles`: configs that are set on the topic.
    """

    min_insync_replicas: Int64s
    min_insync_racks: Int64s
    enforced: Bools
    survive: Int64s
    known: Bools
    left_alone: Bools
    diskless: Bools
    unclean_election: Bools
    leader_throttles: Bools
    follower_throttles: Bools

    def of(self, index: Int32s | Int64s | Bools) -> "Requirements":
        """The entries at `index`: topic codes of shape (P,) give one entry a partition."""
        return Requirements(**{column.name: getattr(self, column.name)[index] for column in fields(self)})


@dataclass(frozen=True)
class PartitionBatch:
    """Partitions of one cluster and what is required of each. `topics` are names by topic code; P is the number of rows."""

    members: ClusterMembers
    topics: Sequence[str]
    rows: PartitionColumns
    required: Requirements

    @cached_property
    def leader_index(self) -> Int32s:
        """Index of each leader among the brokers, −1 for none. Shape (P,)."""
        return self.members.rack_map.broker_index(self.rows.leader)

    @cached_property
    def replica_index(self) -> Int32s:
        return self.members.rack_map.broker_index(self.rows.replicas)

    @cached_property
    def isr_index(self) -> Int32s:
        return self.members.rack_map.broker_index(self.rows.isr)

    @cached_property
    def on_failed_log_dir(self) -> Bools:
        """Replicas in a failed log directory of a broker that is up: they never get in sync before that is repaired. Shape as `replicas`."""
        return np.asarray(
            listed_in(self.rows.replicas, self.rows.offline_replicas) & self.members.usable[self.replica_index]
        )

    @cached_property
    def isr_up(self) -> Bools:
        """Which of the replicas in sync can lead: their broker is up, and their log directory works. Shape as `isr`."""
        return np.asarray(self.members.usable[self.isr_index] & ~listed_in(self.rows.isr, self.rows.offline_replicas))

    @cached_property
    def isr_unlisted(self) -> Bools:
        """Which of the replicas in sync are on brokers that are up, and that Kafka lists by another listener only. Shape as `isr`.

        A broker that is down leaves the ISR, unless it is the last of it, and a partition whose leader is down has none.
        """
        unlisted = (self.isr_index < 0) & (self.rows.isr != NO_BROKER)
        led = (self.rows.leader == UNKNOWN_LEADER) | any_in_row(self.isr_up)
        return np.asarray(unlisted & led[:, None])

    @cached_property
    def isr_hidden(self) -> Bools:
        """Those of them of partitions whose leader was not reported. Shape as `isr`."""
        return np.asarray(self.isr_unlisted & (self.rows.leader == UNKNOWN_LEADER)[:, None])

    @cached_property
    def leaderless(self) -> Bools:
        """Partitions from which no replica can be copied: without a leader, or soon, since nobody who may lead is up. Shape (P,).

        A broker that has just stopped may still be reported as leader.
        """
        nobody_able = ~any_in_row(self.isr_up) & (self.rows.leader != UNKNOWN_LEADER)
        return np.asarray((self.rows.leader == NO_BROKER) | nobody_able)

    @cached_property
    def staying(self) -> Bools:
        """Replicas that no reassignment is removing: a reassignment is judged by its target. Shape as `replicas`."""
        staying = self.rows.replicas != NO_BROKER
        for removed in self.rows.removing_replicas.T:
            staying &= self.rows.replicas != removed[:, None]
        return np.asarray(staying)

    @cached_property
    def reassigning(self) -> Bools:
        """Partitions with a reassignment in flight: no plan touches them until that has ended. Shape (P,)."""
        return any_in_row(self.rows.adding_replicas != NO_BROKER) | any_in_row(self.rows.removing_replicas != NO_BROKER)

    @cached_property
    def being_copied(self) -> Bools:
        """Replicas that a reassignment is copying to live brokers: until they are in sync nothing is wrong with them. Shape as `replicas`."""
        added = np.zeros(self.rows.replicas.shape, dtype=np.bool_)
        for column in self.rows.adding_replicas.T:
            added |= self.rows.replicas == column[:, None]
        return np.asarray(added & self.members.usable[self.replica_index] & ~self.on_failed_log_dir)

    @cached_property
    def replication_factor(self) -> Int64s:
        return count_in_row(self.staying)

    @cached_property
    def topic_replication_factor(self) -> Int64s:
        """The largest replication factor of each topic in the batch. Shape (topics,)."""
        largest = np.zeros(len(self.topics), dtype=np.int64)
        np.maximum.at(largest, self.rows.topic, self.replication_factor)
        return largest

    @cached_property
    def usual_replication_factor(self) -> Int64s:
        """The replication factor of most partitions of each topic, the larger of two. Shape (topics,)."""
        width = int(self.topic_replication_factor.max(initial=0)) + 1
        cells = self.rows.topic.astype(np.int64) * width + self.replication_factor
        held = np.bincount(cells, minlength=len(self.topics) * width).reshape(len(self.topics), width)
        return np.asarray(width - 1 - held[:, ::-1].argmax(axis=1))

    @cached_property
    def replica_racks(self) -> Int32s:
        """Rack code of each staying replica. Shape as `replicas`."""
        return np.where(self.staying, self.members.rack_map.codes_at(self.replica_index), -1).astype(np.int32)

    @cached_property
    def uncounted(self) -> Bools:
        """Staying replicas on listed brokers that count in no rack, where others do: no plan moves them. Shape as `replicas`."""
        without = self.staying & (self.replica_index >= 0) & (self.replica_racks < 0)
        return np.asarray(without & bool(self.members.rack_map.racks))

    @cached_property
    def isr_racks(self) -> Int32s:
        return self.members.rack_map.codes_at(self.isr_index)

    @cached_property
    def replica_rack_counts(self) -> Int64s:
        """Staying replicas per rack, fullest first. Shape as `replicas`."""
        return counts_descending(self.replica_racks)

    @cached_property
    def replica_rack_count(self) -> Int64s:
        """Distinct racks among the staying replicas. Shape (P,)."""
        return count_in_row(self.replica_rack_counts > 0)

    @cached_property
    def even_rack_counts(self) -> Int64s:
        """`replica_rack_counts` if racks were used as evenly as possible. Same shape."""
        width = self.replica_rack_counts.shape[1]
        ideal = np.zeros((width + 1, width), dtype=np.int64)
        for replication_factor in range(1, width + 1):
            counts = self.members.even_counts(replication_factor)[:width]
            ideal[replication_factor, : len(counts)] = counts
        return np.asarray(ideal[self.replication_factor])

    @cached_property
    def uneven(self) -> Bools:
        """Partitions with more replicas in a rack than an even spread puts there. Shape (P,).

        Where every replica's rack is known both sides have the same sum, so "none above" means equal. A replica on an
        unknown broker may be in any rack: a spread is uneven only if no rack for it could make it even.
        """
        return any_in_row(self.replica_rack_counts > self.even_rack_counts)

    @cached_property
    def forcing_value(self) -> Int64s:
        """The least min.insync.replicas that forces the required racks; above the replication factor where none does.

        A replica that counts in no rack (on an unlisted broker, or without a rack under `ignore`) guarantees nothing: it
        may be in sync beside the fullest racks, so each one raises the value by one. Shape (P,).
        """
        uncounted = self.replication_factor - self.replica_rack_counts.sum(axis=1)
        by_counts = forcing_value(self.replica_rack_counts, self.required.min_insync_racks)
        return np.where(self.required.min_insync_racks > 1, by_counts + uncounted, 1)

    @cached_property
    def topic_forcing_value(self) -> Int64s:
        """The least min.insync.replicas that forces the racks of every partition of a topic. Shape (topics,)."""
        largest = np.zeros(len(self.topics), dtype=np.int64)
        np.maximum.at(largest, self.rows.topic, self.forcing_value)
        return largest

    @cached_property
    def hardened(self) -> "PartitionBatch":
        """The same partitions with min.insync.replicas raised to the value that forces the racks of the whole topic."""
        value = np.maximum(self.required.min_insync_replicas, self.topic_forcing_value[self.rows.topic])
        return replace(self, required=replace(self.required, min_insync_replicas=value))

    @cached_property
    def stopped_by_hardening(self) -> Bools:
        """Partitions that take acks=all after the loss that they have to survive, and not with `hardened`. Shape (P,)."""
        now = self.hardened.worst_loss_now.harmed & ~self.worst_loss_now.harmed & ~self.leaderless
        return np.asarray(self.misplaced_to_harden | now)

    @cached_property
    def misplaced_to_harden(self) -> Bools:
        """Those of them that do not with every replica in sync either: another placement comes first. Shape (P,)."""
        return np.asarray(self.hardened.worst_loss_placed.harmed & ~self.worst_loss_placed.harmed)

    @cached_property
    def refused_by_hardening(self) -> Bools:
        """Partitions that take acks=all now, and not with `hardened`: too few are in sync. Shape (P,)."""
        # A broker that is fenced and still in the ISR leaves it. One that is not listed is up beside a leader.
        listed_and_down = (self.isr_index >= 0) & ~self.isr_up
        in_sync = count_in_row((self.rows.isr != NO_BROKER) & ~listed_and_down)
        accepting = ~self.leaderless & (in_sync >= self.min_isr)
        return np.asarray(accepting & (in_sync < self.hardened.min_isr))

    @cached_property
    def known_before_hardening(self) -> dict[int, Remedy]:
        """What comes before hardening, by topic code, as far as it was needed."""
        return {}

    @cached_property
    def min_isr(self) -> Int64s:
        """How many in sync acks=all needs now. Replicas being removed count, as brokers count them. Shape (P,)."""
        return effective_min_isr(self.required.min_insync_replicas, lengths(self.rows.replicas))

    @cached_property
    def isr_size(self) -> Int64s:
        return lengths(self.rows.isr)

    @cached_property
    def isr_rack_count(self) -> Int64s:
        return distinct_racks(self.isr_racks)

    @cached_property
    def worst_loss_now(self) -> WorstLoss:
        """The worst loss at present: only replicas in sync that are up can lead."""
        return self._worst_loss(self.isr_racks, self.isr_up, self.min_isr)

    @cached_property
    def worst_loss_placed(self) -> WorstLoss:
        """The worst loss with every replica in sync and every reassignment finished. Unlisted brokers never are in sync."""
        listed = self.staying & (self.replica_index >= 0)
        min_isr = effective_min_isr(self.required.min_insync_replicas, self.replication_factor)
        return self._worst_loss(self.replica_racks, listed, min_isr)

    def _worst_loss(self, rack_codes: Int32s, in_sync: Bools, min_isr: Int64s) -> WorstLoss:
        return worst_loss(rack_codes, in_sync, self.required.survive, min_isr, self.required.min_insync_racks)

    def take(self, rows: Int64s | Bools) -> "PartitionBatch":
        """The batch of these rows alone."""
        return PartitionBatch(self.members, self.topics, self.rows.take(rows), self.required.of(rows))

    @cached_property
    def judged(self) -> "PartitionBatch":
        """The partitions without those of diskless topics, whose replicas say nothing about their safety."""
        return self.take(~self.required.diskless) if self.required.diskless.any() else self

    def of_topics(self, topic_filter: re.Pattern[str] | None) -> "PartitionBatch":
        """The partitions of the topics whose whole name matches; None for all."""
        if topic_filter is None:
            return self
        matching = np.array([topic_filter.fullmatch(topic) is not None for topic in self.topics], dtype=np.bool_)
        return self.take(np.flatnonzero(matching[self.rows.topic]))

    def rows_of(self, topic: int) -> Int64s:
        """The rows of a topic, by its code, ascending."""
        order, ends = self._rows_by_topic
        return order[ends[topic] : ends[topic + 1]]

    @cached_property
    def _rows_by_topic(self) -> tuple[Int64s, Int64s]:
        """All rows, topic by topic, and where each topic begins."""
        counts = np.bincount(self.rows.topic, minlength=len(self.topics))
        return np.argsort(self.rows.topic, kind="stable"), np.concatenate(([0], np.cumsum(counts)))

    def topic(self, row: int) -> str:
        """The name of a row's topic."""
        self.named.add(row)
        return self.topics[int(self.rows.topic[row])]

    @cached_property
    def named(self) -> set[int]:
        """The rows of which `topic` was called: words about others are the same whatever the name of their topic."""
        return set()

    def partition(self, row: int) -> Partition:
        """One row, for words about it. Kept, since many words are about each."""
        if row not in self._partitions:
            self._partitions[row] = self.rows.row(row)
        return self._partitions[row]

    def keep(self, rows: Int64s) -> None:
        """Make these rows for `partition` at once, in a tenth of the time."""
        self._partitions.update(zip(rows.tolist(), self.rows.take(rows), strict=True))

    @cached_property
    def _partitions(self) -> dict[int, Partition]:
        return {}


def effective_min_isr(min_insync_replicas: Int64s, replicas: Int64s) -> Int64s:
    """The number in sync that brokers require: never more than a partition has `replicas`. Arguments and result: shape (P,).

    Source: Kafka's Partition.effectiveMinIsr, since 3.7 (KAFKA-15583). acks/min_insync_racks.py has the rule for one partition.
    """
    return np.minimum(min_insync_replicas, replicas)


def under_minimum(in_sync: Int64s, racks: Int64s, min_isr: Int64s, min_insync_racks: Int64s) -> tuple[Bools, Bools]:
    """Which partitions refuse acks=all with so many replicas in sync, on so many racks: by replicas, and by racks.

    Arguments and results: shape (P,). `min_isr` is what `effective_min_isr` returns.
    """
    return np.asarray(in_sync < min_isr), np.asarray((min_insync_racks > 1) & (racks < min_insync_racks))


def requirements(topics: Sequence[Topic], policy: RackPolicy) -> Requirements:
    """The minimums of each topic: the policy's racks, unless the topic's own effective config requires more.

    Brokers refuse writes below the config whatever the policy says, and do not enforce a policy above it.
    """
    configured = [topic.config_number(MIN_INSYNC_RACKS) for topic in topics]
    racks = [max(own, policy.min_insync_racks_of(topic.name)) for topic, own in zip(topics, configured, strict=True)]
    native = [
        MIN_INSYNC_RACKS in topic.config and own == required
        for topic, own, required in zip(topics, configured, racks, strict=True)
    ]
    return Requirements(
        min_insync_replicas=np.array([t.config_number(MIN_INSYNC_REPLICAS) for t in topics], dtype=np.int64),
        min_insync_racks=np.array(racks, dtype=np.int64),
        enforced=np.array(native, dtype=np.bool_),
        survive=np.array([SURVIVE_CODES.index(policy.survive_of(t.name)) for t in topics], dtype=np.int64),
        known=np.array([MIN_INSYNC_REPLICAS in t.config for t in topics], dtype=np.bool_),
        left_alone=np.array([policy.leaves_alone(t.name) for t in topics], dtype=np.bool_),
        diskless=np.array([t.diskless for t in topics], dtype=np.bool_),
        unclean_election=np.array([t.config.get(UNCLEAN_LEADER_ELECTION) == "true" for t in topics], dtype=np.bool_),
        leader_throttles=np.array([bool(t.config.get(LEADER_REPLICAS)) for t in topics], dtype=np.bool_),
        follower_throttles=np.array([bool(t.config.get(FOLLOWER_REPLICAS)) for t in topics], dtype=np.bool_),
    )


def snapshot_batch(snapshot: ClusterSnapshot, policy: RackPolicy) -> PartitionBatch:
    """A whole snapshot as one batch."""
    return PartitionBatch(
        members=ClusterMembers(snapshot.brokers, snapshot.controllers, policy),
        topics=[topic.name for topic in snapshot.topics],
        rows=snapshot.partitions,
        required=requirements(snapshot.topics, policy).of(snapshot.partitions.topic),
    )
