"""A broker's AlterPartition requests: one under way, what comes meanwhile goes with the next.

Every sending has a number of its own; only the answer to the newest is heeded. A request without an answer goes out
again under the next number: which of the two the controller accepted, the image will say.
"""

from dataclasses import dataclass, field

from rackspan.cluster.core.messages import AlterPartition, AlterPartitionResponse, IsrChange
from rackspan.model.ids import BrokerId, TopicPartition


@dataclass(slots=True)
class IsrRequests:
    """`under_way` is what the newest attempt carries. Times in ms."""

    waiting: dict[TopicPartition, IsrChange] = field(default_factory=dict)
    under_way: dict[TopicPartition, IsrChange] = field(default_factory=dict)
    attempt: int = 0
    sent_at: int = 0

    def ask(self, change: IsrChange) -> None:
        self.waiting[change.partition] = change

    def drop(self, partition: TopicPartition) -> None:
        """The image has overtaken it. What is under way cannot be called back."""
        self.waiting.pop(partition, None)

    def next_request(self, now: int, broker: BrokerId, broker_epoch: int, retry_ms: int) -> AlterPartition | None:
        if self.under_way and now - self.sent_at < retry_ms:
            return None
        self.under_way |= self.waiting
        self.waiting.clear()
        if not self.under_way:
            return None
        self.attempt += 1
        self.sent_at = now
        return AlterPartition(broker, broker_epoch, self.attempt, tuple(self.under_way.values()))

    def answered(self, response: AlterPartitionResponse) -> dict[TopicPartition, IsrChange]:
        """What the newest attempt asked for, now that it is answered; nothing for an older one."""
        if response.attempt != self.attempt:
            return {}
        asked, self.under_way = self.under_way, {}
        return asked

    def forget(self) -> None:
        """A new broker epoch: the numbers go on, what was asked is void."""
        self.waiting.clear()
        self.under_way.clear()
