"""One machine: a disk that outlives the broker's process, and what of it outlives the machine's power."""

from dataclasses import dataclass, field

from rackspan.cluster.core.broker import BrokerCore
from rackspan.cluster.core.disk import Disk
from rackspan.cluster.core.ids import NO_EPOCH, NodeId
from rackspan.cluster.core.messages import Effect, Message
from rackspan.cluster.core.process import BrokerProcess
from rackspan.model.ids import BrokerId, RackId, TopicPartition


@dataclass(slots=True)
class Machine:
    """`broker` is None while no process runs. `frozen_until` is when it wakes, in ms; `incarnation` counts processes.

    `down` counts the faults that keep it down: it starts again when the last of them ends.
    """

    id: BrokerId
    rack: RackId | None
    disk: Disk = field(default_factory=Disk)
    flushed: dict[TopicPartition, int] = field(default_factory=dict)
    broker: BrokerCore | None = None
    process: BrokerProcess | None = None
    """Around the broker, where coordinators run beside it."""
    incarnation: int = 0
    frozen_until: int = 0
    down: int = 0
    ticking: bool = False

    def on_message(self, now: int, source: NodeId, message: Message) -> list[Effect]:
        """By the process, or by the broker where that is all of it."""
        assert self.broker is not None
        return (self.process or self.broker).on_message(now, source, message)

    def on_tick(self, now: int) -> list[Effect]:
        assert self.broker is not None
        return (self.process or self.broker).on_tick(now)

    def stop(self) -> None:
        self.broker = self.process = None

    def flush(self) -> None:
        self.flushed = {partition: log.end_offset for partition, log in self.disk.logs.items()}

    def lose_power(self) -> bool:
        """Cut every log to what was flushed, unless it shut down cleanly before; whether anything was lost."""
        if self.disk.clean_shutdown_epoch != NO_EPOCH and self.broker is None:
            return False
        self.disk.clean_shutdown_epoch = NO_EPOCH
        lost = False
        for partition, log in self.disk.logs.items():
            lost = log.truncate_to(min(log.end_offset, self.flushed.get(partition, 0))) or lost
        return lost

    def lose_disk(self) -> None:
        """An empty disk never has a mark."""
        self.disk = Disk()
        self.flushed = {}
