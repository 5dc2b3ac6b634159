"""KRaft's striped placement as Kafka computes it: one partition after another, over lists with a position."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rackspan.model.ids import NO_BROKER, BrokerId, RackId
from rackspan.placement.kafka.java_random import RandomGenerator, hash_map_order, shuffle, utf16
from rackspan.placement.usable_brokers import UsableBroker


@dataclass(slots=True)
class BrokerList:
    """The live or the fenced brokers of one rack, returned cyclically: each once a partition, starting one later each time.

    `epoch` is the partition (since the last shuffle) for which it was last used.
    """

    brokers: list[BrokerId] = field(default_factory=list)
    offset: int = 0
    index: int = 0
    epoch: int = 0

    def draw_offset(self, rng: RandomGenerator) -> None:
        if self.brokers:
            self.brokers.sort()
            self.offset = rng.next_int(len(self.brokers))

    def next_broker(self, epoch: int) -> int:
        """The next broker, NO_BROKER once every broker was returned in this epoch."""
        if not self.brokers:
            return NO_BROKER
        if self.epoch != epoch:
            self.epoch, self.index, self.offset = epoch, 0, (self.offset + 1) % len(self.brokers)
        if self.index >= len(self.brokers):
            return NO_BROKER
        broker = self.brokers[(self.index + self.offset) % len(self.brokers)]
        self.index += 1
        return broker


@dataclass(slots=True)
class Rack:
    """The brokers of one rack, live ones first."""

    unfenced: BrokerList = field(default_factory=BrokerList)
    fenced: BrokerList = field(default_factory=BrokerList)

    def next_broker(self, epoch: int) -> int:
        broker = self.unfenced.next_broker(epoch)
        return broker if broker != NO_BROKER else self.fenced.next_broker(epoch)


@dataclass(slots=True)
class RackStripes:
    """The racks during one call of `place`.

    `drawing` are the racks in the order in which they draw random numbers, `striped` the same racks in the order in which
    they are used. `epoch` counts partitions since the last shuffle, `offset` is the index of the rack that leads next.
    """

    drawing: list[Rack]
    striped: list[Rack]
    live_brokers: int
    offset: int
    rng: RandomGenerator
    epoch: int = 0

    @property
    def lists_restart_after_shuffle(self) -> bool:
        """Whether no list is used in the same epoch before and after a shuffle.

        Kafka decides by the epoch alone whether a list was used for this partition already, and epochs begin again at 0
        with every shuffle. A list is used at least once in as many partitions as there are racks, or never; so with rounds
        of two times the racks, the last epoch before a shuffle and the first after it differ.
        """
        return self.live_brokers == 1 or self.live_brokers >= 2 * len(self.drawing)

    def next_partition(self, num_replicas: int) -> list[int]:
        """The replicas of the next partition: a leader, then followers from the same rack on, skipping the leader's once."""
        if self.epoch == self.live_brokers > 1:
            self._shuffle()
        self.offset %= len(self.striped)
        leader_rack, leader = self._leader()
        replicas = [leader]
        rack = self.offset
        while len(replicas) < num_replicas:
            if rack == leader_rack:
                leader_rack = -1
            elif (broker := self.striped[rack].next_broker(self.epoch)) != NO_BROKER:
                replicas.append(broker)
            rack = (rack + 1) % len(self.striped)
        self.epoch += 1
        self.offset += 1
        return replicas

    def _leader(self) -> tuple[int, int]:
        """The first live broker from rack `offset` on, and the index of its rack."""
        rack = self.offset
        while (broker := self.striped[rack].unfenced.next_broker(self.epoch)) == NO_BROKER:
            rack = (rack + 1) % len(self.striped)
        return rack, broker

    def _shuffle(self) -> None:
        shuffle(self.striped, self.rng)
        for rack in self.drawing:
            shuffle(rack.fenced.brokers, self.rng)
            shuffle(rack.unfenced.brokers, self.rng)
        self.epoch = 0


def rack_stripes(brokers: Sequence[UsableBroker], rng: RandomGenerator) -> RackStripes:
    """Racks by name, the unnamed one first, and brokers by id; random offsets for every list, then one for the racks."""
    racks: dict[RackId | None, Rack] = {}
    for broker in brokers:
        rack = racks.setdefault(broker.rack, Rack())
        (rack.fenced if broker.fenced else rack.unfenced).brokers.append(broker.id)
    drawing = [racks[name] for name in hash_map_order(racks)]
    for rack in drawing:
        rack.fenced.draw_offset(rng)
        rack.unfenced.draw_offset(rng)
    return RackStripes(
        drawing=drawing,
        striped=[racks[name] for name in sorted(racks, key=utf16)],
        live_brokers=sum(not broker.fenced for broker in brokers),
        offset=rng.next_int(len(racks)) if racks else 0,
        rng=rng,
    )
