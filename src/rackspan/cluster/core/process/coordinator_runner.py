"""Runs a group or transaction coordinator inside a broker's process: elections, clock ticks, and the order of its effects."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.coordination import PendingLoads
from rackspan.cluster.core.ids import NO_OFFSET
from rackspan.cluster.core.log import PartitionLog
from rackspan.cluster.core.messages import LeadershipChanged
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition


class Coordinator(Protocol):
    """What both coordinators have; `on_request` differs in its requests."""

    def on_elected(
        self, now: int, partition: int, leader_epoch: int, batches: Iterable[RecordBatch]
    ) -> Iterable[Any]: ...

    def on_resigned(self, now: int, partition: int) -> Iterable[Any]: ...

    def on_appended(self, now: int, write: int, error: ErrorCode, base_offset: int = NO_OFFSET) -> Iterable[Any]: ...

    def on_tick(self, now: int) -> Iterable[Any]: ...


class CoordinatorRunner:
    """One coordinator, whose records are in `topic`. `handle` is called with each of its effects, in their order.

    `log_of` is the broker's log of a partition of the topic.
    """

    def __init__(
        self,
        topic: str,
        coordinator: Coordinator,
        log_of: Callable[[TopicPartition], PartitionLog],
        handle: Callable[[int, Any], None],
    ) -> None:
        self._topic = topic
        self._coordinator = coordinator
        self._log_of = log_of
        self._handle = handle
        self._pending_loads = PendingLoads()
        self._effects: deque[Any] = deque()
        self._busy = False

    def on_leadership(self, now: int, change: LeadershipChanged) -> None:
        """Load the partition when its log allows, or unload it. Changes of other topics are ignored."""
        if change.partition.topic != self._topic:
            return
        number = change.partition.partition
        if change.leads:
            self._pending_loads.add(number, change.leader_epoch, self._log(number))
            self._load(now)
        else:
            self._pending_loads.remove(number)
            self.carry_out(now, self._coordinator.on_resigned(now, number))

    def _load(self, now: int) -> None:
        for number, leader_epoch in self._pending_loads.pop_ready(self._log):
            self.carry_out(now, self._coordinator.on_elected(now, number, leader_epoch, self._log(number).batches))

    def _log(self, number: int) -> PartitionLog:
        return self._log_of(TopicPartition(self._topic, number))

    def on_tick(self, now: int) -> None:
        """Load what may be loaded by now, then pass the tick on."""
        self._load(now)
        self.carry_out(now, self._coordinator.on_tick(now))

    def carry_out(self, now: int, effects: Iterable[Any]) -> None:
        """Handle effects in their order, also those that one of them leads to: appends must not overtake each other."""
        self._effects.extend(effects)
        if self._busy:
            return
        self._busy = True
        try:
            while self._effects:
                self._handle(now, self._effects.popleft())
        finally:
            self._busy = False
