"""Reading one range of offsets to its end: which broker is fetched from next, and what each response means. Pure.

The range is complete when the position is at its end, however few records lie before it: batches of markers, of aborted
transactions and of compacted records move the position without a record.

Source: KIP-392 for followers, KIP-320 for leader epochs; Kafka's consumer for the meaning of errors.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rackspan.errors import ClusterRequestFailed
from rackspan.kafka_bytes.error_codes import ErrorCode, error_code
from rackspan.kafka_source.cluster import FetchedRecords, SourceMetadata, error_name
from rackspan.kafka_source.ranges import OffsetRange
from rackspan.kafka_source.records.columns import Fetched, decode
from rackspan.model.ids import NO_BROKER

OTHER_IDS: Final = 10
"""Responses with another topic id, each after a pause, before it is believed: a broker may be late to apply metadata."""

LAGGING_FETCHES: Final = 20
"""Empty responses of a follower, each after the fetch's wait, before the leader is fetched from: it lags behind."""

_RECORD_BYTES: Final = 1024
"""Assumed of a record before any has arrived. Too little costs one more request, too much is sent for nothing."""

_SPARE_BYTES: Final = 1 << 16
"""Requested beyond the estimate: brokers send whole batches, so that the last one may be cut off."""


class ReplicaChoice(StrEnum):
    """Why a task reads the replica it reads."""

    SAME_RACK = "same-rack"
    NO_RACK = "executor-without-rack"
    UNKNOWN_RACK = "rack-of-no-broker"
    NO_REPLICA = "no-replica-in-rack"
    NOT_IN_SYNC = "replica-not-in-sync"
    FOLLOWER_FAILED = "follower-failed"


class Next(StrEnum):
    """What to do after a response."""

    FETCH = "fetch"
    REFRESH = "refresh the metadata, then fetch"
    OUT_OF_RANGE = "request where the leader's log begins and ends"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class ReadStep:
    next: Next
    fetched: Fetched | None = None
    lost: tuple[int, int, str] | None = None
    """Offsets from, up to, and why: records that no broker has any more, and that were skipped."""


class RangeProgress:
    """The position in a range. `fail_on_data_loss` decides whether records that are gone raise or are skipped.

    `costs` are those of reading from other racks; a rack without one is as dear as can be, and of equals the leader is read.
    """

    def __init__(
        self,
        wanted: OffsetRange,
        rack: str | None,
        *,
        fail_on_data_loss: bool,
        check_crcs: bool = True,
        costs: Mapping[str, float] | None = None,
    ) -> None:
        self.range = wanted
        self.position = wanted.start
        self.broker = NO_BROKER
        self.choice = ReplicaChoice.NO_RACK
        self._leader = NO_BROKER
        self._rack = rack
        self._fail_on_data_loss = fail_on_data_loss
        self._check_crcs = check_crcs
        self._costs = costs or {}
        self.created_again: ReadStep | None = None
        """The reason to skip offsets since the topic was created again."""
        self.topic_id = wanted.topic_id
        self._other_ids = 0
        self._failed_followers: set[int] = set()
        self._empty = 0
        self._bytes_received = 0
        self._batch_is_larger = False

    @property
    def is_done(self) -> bool:
        return self.position >= self.range.end

    def fetch_bytes(self, most: int) -> int:
        """How much to request: about what is left of the range by the records so far, so that little beyond it is sent."""
        if self._batch_is_larger:
            return most
        passed = self.position - self.range.start
        per_offset = self._bytes_received / passed if self._bytes_received else _RECORD_BYTES
        return min(most, int((self.range.end - self.position) * per_offset) + _SPARE_BYTES)

    def choose_replica(self, metadata: SourceMetadata) -> bool:
        """Choose the broker to fetch from; False if there is none now. Errors: ClusterRequestFailed for a topic made anew."""
        topic = metadata.topics.get(self.range.partition.topic)
        row = topic.partitions.get(self.range.partition.partition) if topic else None
        if topic is None or row is None:
            return False
        if self.topic_id and topic.topic_id and topic.topic_id != self.topic_id:
            self._other_ids += 1
            if self._other_ids >= OTHER_IDS:
                self.created_again = self._skipped(
                    self.range.end,
                    f"topic {self.range.partition.topic} was deleted and created again after they were planned: "
                    f"its id was {self.topic_id}, and is {topic.topic_id} now",
                    "Start the query again; a stream needs failOnDataLoss=false for that, or a new checkpointLocation",
                )
            return False
        self.topic_id = self.topic_id or topic.topic_id
        self._other_ids = 0
        self._leader = row.leader
        self.choice, follower = self._local_replica(metadata, row.replicas, row.isr)
        self.broker = row.leader if follower is None else follower
        return self.broker in metadata.racks

    def _local_replica(
        self, metadata: SourceMetadata, replicas: tuple[int, ...], isr: tuple[int, ...]
    ) -> tuple[ReplicaChoice, int | None]:
        """Why, and the replica in the task's rack; None for the leader."""
        if self._rack is None:
            return ReplicaChoice.NO_RACK, None
        if self._rack not in metadata.racks.values():
            return ReplicaChoice.UNKNOWN_RACK, self._cheapest(metadata, isr)
        here = [broker for broker in replicas if metadata.racks.get(broker) == self._rack]
        if not here:
            return ReplicaChoice.NO_REPLICA, self._cheapest(metadata, isr)
        if self._leader in here:
            return ReplicaChoice.SAME_RACK, None
        in_sync = [broker for broker in here if broker in isr]
        if not in_sync:
            return ReplicaChoice.NOT_IN_SYNC, self._cheapest(metadata, isr)
        usable = [broker for broker in in_sync if broker not in self._failed_followers]
        return (ReplicaChoice.SAME_RACK, usable[0]) if usable else (ReplicaChoice.FOLLOWER_FAILED, None)

    def _cheapest(self, metadata: SourceMetadata, isr: tuple[int, ...]) -> int | None:
        """The in-sync replica of the cheapest rack; None for the leader, also if a follower costs the same."""
        followers = [broker for broker in isr if broker not in self._failed_followers]

        def cost(broker: int) -> float:
            # A broker that is down has no rack, and so no cost that is below the leader's.
            return self._costs.get(metadata.racks.get(broker) or "", math.inf)

        best = min([self._leader, *followers], key=cost)
        return None if best == self._leader else best

    def failed(self) -> None:
        """The fetch got no response: its broker is down, or the network."""
        if self.broker != self._leader:
            self._failed_followers.add(self.broker)

    def received(self, response: FetchedRecords) -> ReadStep:
        """Errors: ClusterRequestFailed; CorruptRecords if the bytes that arrived are not those that were sent."""
        if response.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if self.broker == self._leader:
                return ReadStep(Next.OUT_OF_RANGE)
            # A follower's log may begin later or end earlier than the leader's: only the leader's counts.
            self.failed()
            return ReadStep(Next.REFRESH)
        if error_code(response.error_code).is_retriable:
            self.failed()
            return ReadStep(Next.REFRESH)
        if response.error_code != ErrorCode.NONE:
            raise ClusterRequestFailed(
                f"{self.range.partition}: broker {self.broker} refuses the fetch: {error_name(response.error_code)}"
            )
        fetched = decode(response.records, self.position, self.range.end, response.aborted, check_crcs=self._check_crcs)
        if fetched.next_offset > self.position:
            self.position, self._empty = fetched.next_offset, 0
            self._bytes_received += len(response.records)
            self._batch_is_larger = False
            return ReadStep(Next.DONE if self.is_done else Next.FETCH, fetched)
        return self._nothing_new(response)

    def _nothing_new(self, response: FetchedRecords) -> ReadStep:
        """The broker has no batch at the position yet."""
        if response.records and not self._batch_is_larger:
            # Kafka sends a whole batch however few bytes are requested; other brokers may not.
            self._batch_is_larger = True
            return ReadStep(Next.FETCH)
        if response.records:
            raise ClusterRequestFailed(
                f"{self.range.partition}: the batch at offset {self.position} does not fit into a fetch of "
                f"{len(response.records)} bytes; raise kafka.max.partition.fetch.bytes"
            )
        if self.broker != self._leader:
            self._empty += 1
            if self._empty < LAGGING_FETCHES:
                return ReadStep(Next.FETCH)
            self.failed()
        return ReadStep(Next.REFRESH)

    def beyond_log(self, log_start: int, log_end: int) -> ReadStep:
        """After Next.OUT_OF_RANGE: what the leader's log holds now. Errors: ClusterRequestFailed with `fail_on_data_loss`."""
        begin = self.position
        if log_start <= begin <= log_end:
            return ReadStep(Next.REFRESH)  # The log has changed between the two responses.
        if begin < log_start:
            why = f"the log begins at {log_start}: they were deleted, by retention or by request"
        else:
            why = f"the log ends at {log_end}: it was truncated, or the topic was created again"
        end = min(log_start, self.range.end) if begin < log_start else self.range.end
        return self._skipped(end, why, "failOnDataLoss=false skips them")

    def _skipped(self, end: int, why: str, remedy: str) -> ReadStep:
        """Moves the position over records that are gone. Errors: ClusterRequestFailed with `fail_on_data_loss`."""
        begin, self.position = self.position, end
        if self._fail_on_data_loss:
            raise ClusterRequestFailed(f"{self.range.partition}: offsets {begin} to {end} are gone; {why}. {remedy}")
        return ReadStep(Next.DONE if self.is_done else Next.FETCH, lost=(begin, end, why))
