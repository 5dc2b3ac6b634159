"""A broker's process in a world with transactions: the core's, with numbered records, which the judges can distinguish."""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker import BrokerCore
from rackspan.cluster.core.groups import GroupCoordinator
from rackspan.cluster.core.messages import Produce, ProduceResponse
from rackspan.cluster.core.process import BrokerProcess
from rackspan.cluster.core.transactions import TransactionCoordinator
from rackspan.model.ids import TopicPartition


class SimulatedProcess(BrokerProcess):
    """`next_record` numbers the records that coordinators append; their bytes stay the coordinators'.

    `acknowledged` collects the appends of coordinators that were acknowledged in the event at hand.
    """

    append_timeout_ms: ClassVar[int] = 600
    """As short as the rest of a world."""
    request_timeout_ms: ClassVar[int] = 300

    def __init__(
        self,
        broker: BrokerCore,
        groups: GroupCoordinator,
        transactions: TransactionCoordinator,
        next_record: Callable[[int], int],
    ) -> None:
        super().__init__(broker, groups, transactions)
        self._next_record = next_record
        self.acknowledged: list[tuple[Produce, ProduceResponse]] = []

    def append(
        self, now: int, partition: TopicPartition, batch: RecordBatch, then: Callable[[int, ProduceResponse], None]
    ) -> None:
        numbered = replace(batch, max_timestamp=self._next_record(batch.record_count))
        produce = Produce(0, partition, (numbered,))

        def appended(later: int, response: ProduceResponse) -> None:
            self.acknowledged.append((produce, response))
            then(later, response)

        super().append(now, partition, numbered, appended)
