"""A follower's side of its fetches: one question to each leader, for all that is followed there.

A question goes out when something is to be declared, when the last was answered, and anew when no answer came. One that
goes out while another is parked takes its place at the leader.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from rackspan.cluster.core.broker.follower import Follower, Heeded
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.messages import ReplicaFetch, ReplicaFetchResponse
from rackspan.model.ids import BrokerId, TopicPartition


@dataclass(slots=True)
class Fetcher:
    """All that is followed of one leader. Times in ms; ordered sets are dicts."""

    leader: BrokerId
    followed: dict[TopicPartition, Follower] = field(default_factory=dict)
    undeclared: dict[TopicPartition, None] = field(default_factory=dict)
    forgotten: dict[TopicPartition, None] = field(default_factory=dict)
    backed_off: dict[TopicPartition, int] = field(default_factory=dict)
    """Refused partitions, and when to ask again."""
    sequence: int = 0
    """Of the last question to this leader: the next one's is one more, or the leader starts the session over."""
    awaits_answer: bool = False
    asked_at: int = 0
    start_over: bool = True

    def follow(self, follower: Follower) -> None:
        self.followed[follower.partition] = follower
        self.undeclared[follower.partition] = None
        self.forgotten.pop(follower.partition, None)
        self.backed_off.pop(follower.partition, None)

    def unfollow(self, partition: TopicPartition) -> None:
        if self.followed.pop(partition, None) is not None:
            self.forgotten[partition] = None
        self.undeclared.pop(partition, None)
        self.backed_off.pop(partition, None)

    def heed(self, now: int, response: ReplicaFetchResponse, backoff_ms: int) -> Iterator[tuple[Follower, Heeded]]:
        """Take a leader's answer, also one that another question has overtaken: what fits is used."""
        if response.sequence == self.sequence:
            self.awaits_answer = False
            self.start_over = response.error is not KafkaError.NONE
        for fetched in response.partitions:
            follower = self.followed.get(fetched.partition)
            if follower is None:
                continue
            heeded = follower.heed(fetched)
            if heeded is Heeded.REFUSED:
                self.backed_off[fetched.partition] = now + backoff_ms
            elif heeded is not Heeded.WATERMARK:
                self.undeclared[fetched.partition] = None
            yield follower, heeded

    def return_from_backoff(self, now: int) -> None:
        for partition in [partition for partition, until in self.backed_off.items() if until <= now]:
            del self.backed_off[partition]
            self.undeclared[partition] = None

    def is_due(self, now: int, retry_ms: int) -> bool:
        if not self.followed and not self.forgotten:
            return False
        return bool(self.undeclared) or not self.awaits_answer or now - self.asked_at >= retry_ms

    def request(self, now: int, broker: BrokerId, broker_epoch: int, retry_ms: int) -> ReplicaFetch:
        """The next question; a whole one after an error or silence."""
        full = self.start_over or (self.awaits_answer and now - self.asked_at >= retry_ms)
        declared = self.followed if full else self.undeclared
        positions = tuple(
            self.followed[partition].position() for partition in declared if partition not in self.backed_off
        )
        self.sequence += 1
        request = ReplicaFetch(broker, broker_epoch, self.sequence, full, positions, tuple(self.forgotten))
        self.undeclared.clear()
        self.forgotten.clear()
        self.awaits_answer, self.asked_at, self.start_over = True, now, False
        return request
