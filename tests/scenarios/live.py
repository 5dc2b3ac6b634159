"""The words of a page about a running cluster: the core itself on a virtual clock (tests/cluster/world.py).

live racks=a,b,c           brokers from 1 on, one a rack named, in office; rules="..." is a planted mistake
create orders 1,2,3 min_insync_racks=2
send first                 a record to orders-0, acks=all; `told first` prints what its producer has received by then
hold AlterPartition        keeps such messages back, until `release`
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from rackspan.cluster.core.admin_messages import (
    AlterConfigs,
    AlterPartitionReassignments,
    AlterResource,
    ConfigOp,
    ReassignablePartition,
)
from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.ids import NodeId
from rackspan.cluster.core.messages import ProduceResponse, Send
from rackspan.cluster.core.metadata import NO_LEADER
from rackspan.cluster.core.settings import ClusterSettings, Elr
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition
from tests.cluster.world import World
from tests.simulation.mistakes.planted import COVERED, PLANTED
from tests.simulation.world import Build

ORDERS: Final = TopicPartition("orders", 0)


class Holding(World):
    """A world whose network can keep messages of a kind back."""

    def __post_init__(self) -> None:
        self.holding: list[tuple[str, int | None]] = []
        self.held: list[tuple[NodeId, Send]] = []
        super().__post_init__()

    def send(self, source: NodeId, effect: Send) -> None:
        kind = type(effect.message).__name__
        if (kind, None) in self.holding or (kind, effect.destination) in self.holding:
            self.held.append((source, effect))
        else:
            super().send(source, effect)

    def release(self) -> None:
        self.holding.clear()
        held, self.held = self.held, []
        for source, effect in held:
            super().send(source, effect)


@dataclass
class Live:
    """A cluster, and the correlation id of each produce, by name."""

    world: Holding
    pending_responses: dict[str, int] = field(default_factory=dict)

    @classmethod
    def begun(cls, racks: str, rules: str = "", elr: str = "racks") -> "Live":
        build = {**PLANTED, **COVERED}[rules].build if rules else Build()
        world = Holding(
            dict(enumerate(racks.split(","), 1)),
            ClusterSettings(elr=Elr(elr)),
            broker_rules=build.broker_rules(),
            controller_rules=build.controller_rules(),
        )
        world.run(500)
        return cls(world)

    def in_rack(self, rack: str) -> list[int]:
        return [broker for broker, one in self.world.rack_of.items() if one == rack]

    def send(self, name: str) -> None:
        leader = self.world.state(ORDERS).leader
        self.pending_responses[name] = self.world.produce(leader, ORDERS, timeout_ms=3_000)

    def deliveries(self, name: str) -> str:
        result = self.world.results.get(self.pending_responses[name])
        if not isinstance(result, ProduceResponse):
            return f"{name}: no response yet"
        if result.error is not ErrorCode.NONE:
            return f"{name}: {result.error.name}" + (f", {result.message}" if result.message else "")
        return f"{name}: acknowledged at offset {result.base_offset}, on disks of {self._holders(result.base_offset)}"

    def _holders(self, offset: int) -> str:
        logs = {broker: disk.logs.get(ORDERS) for broker, disk in self.world.disks.items()}
        holders = [broker for broker, log in logs.items() if log is not None and log.end_offset > offset]
        racks = sorted({str(self.world.rack_of[broker]) for broker in holders})
        return f"brokers {_listed(holders)} in racks {','.join(racks)}"

    def state(self) -> str:
        state = self.world.state(ORDERS)
        leader = "nobody leads" if state.leader == NO_LEADER else f"broker {state.leader} leads"
        elr = f", electable {_listed(state.elr)}" if state.elr else ""
        adding = f", adding {_listed(state.adding)}" if state.adding else ""
        return f"{leader} in epoch {state.leader_epoch}, in sync {_listed(state.isr)}{elr}{adding}"


def _listed(brokers: tuple[BrokerId, ...] | list[int]) -> str:
    return ",".join(map(str, brokers)) or "nobody"


def create(live: Live, topic: str, replicas: str, **configs: str) -> Iterator[str]:
    live.world.create(topic, [int(one) for one in replicas.split(",")], **configs)
    live.world.settle()
    yield live.state()


def send(live: Live, *names: str) -> Iterator[str]:
    for name in names:
        live.send(name)
    yield from ()


def send_numbered(live: Live, name: str, *, sequence: str) -> Iterator[str]:
    """send_numbered first sequence=0: of an idempotent producer"""
    leader = live.world.state(ORDERS).leader
    batch = RecordBatch(0, 0, -1, producer_id=7, producer_epoch=0, base_sequence=int(sequence))
    live.pending_responses[name] = live.world.produce(leader, ORDERS, batch, timeout_ms=3_000)
    yield from ()


def count(live: Live) -> Iterator[str]:
    """How many records the leader's log holds"""
    leader = live.world.state(ORDERS).leader
    yield f"records in the log: {live.world.disks[leader].logs[ORDERS].end_offset}"


def assess(live: Live) -> Iterator[str]:
    """What an operator sees before deciding: the leader's own metrics, and whose brokers are away"""
    leader = live.world.broker(live.world.state(ORDERS).leader)
    shown = {**leader.metrics(), **leader.partition_metrics()[ORDERS]}
    away = sorted({str(rack) for broker, rack in live.world.rack_of.items() if broker not in live.world.nodes})
    yield (
        f"racks in sync {shown['rackspan_partition_isr_racks']},"
        f" partitions under their racks {shown['rackspan_under_min_rack_isr_partitions']},"
        f" refused for want of racks {shown['rackspan_rack_check_failures_total']}; racks away {','.join(away) or 'none'}"
    )


def deliveries(live: Live, *names: str) -> Iterator[str]:
    yield from map(live.deliveries, names)


def wait(live: Live, milliseconds: str) -> Iterator[str]:
    live.world.run(int(milliseconds))
    yield live.state()


def lose(live: Live, *_: str, rack: str) -> Iterator[str]:
    """lose rack=c: its processes end at once; the disks stay as they are"""
    for broker in live.in_rack(rack):
        live.world.kill(broker)
    yield from ()


def restore(live: Live, *_: str, rack: str) -> Iterator[str]:
    for broker in live.in_rack(rack):
        live.world.start(broker)
    live.world.settle()
    yield live.state()


def restore_later(live: Live, *_: str, rack: str) -> Iterator[str]:
    """As restore, and nothing is waited for"""
    for broker in live.in_rack(rack):
        live.world.start(broker)
    yield from ()


def power(live: Live, *_: str, broker: str, lost: str) -> Iterator[str]:
    """power broker=2 lost=3: it stops, and so many batches at the end were never written; it comes back"""
    live.world.kill(int(broker), lost=int(lost))
    live.world.start(int(broker))
    yield from ()


def freeze(live: Live, *_: str, rack: str, milliseconds: str) -> Iterator[str]:
    """freeze rack=b milliseconds=4000: as SIGSTOP"""
    for broker in live.in_rack(rack):
        live.world.freeze(broker, live.world.now + int(milliseconds))
    yield from ()


def alter(live: Live, topic: str, **configs: str) -> Iterator[str]:
    """alter orders min_insync_racks=1: as kafka-configs.sh does, without a restart"""
    ops = tuple(ConfigOp(key.replace("_", "."), 0, value) for key, value in configs.items())
    resource = AlterResource(ConfigResourceType.TOPIC, topic, ops)
    (result,) = live.world.admin(lambda correlation_id: AlterConfigs(correlation_id, (resource,)))
    yield f"{topic}: {result.error.name}"


def reassign(live: Live, replicas: str) -> Iterator[str]:
    requested = tuple(BrokerId(int(one)) for one in replicas.split(","))
    (result,) = live.world.admin(
        lambda correlation_id: AlterPartitionReassignments(correlation_id, (ReassignablePartition(ORDERS, requested),))
    )
    if result.error is not ErrorCode.NONE:
        yield f"{result.error.name}: {result.message}"
    yield live.state()


def hold(live: Live, kind: str, *, to: str | None = None) -> Iterator[str]:
    """hold AlterPartition, hold FetchMetadataResponse to=1"""
    live.world.holding.append((kind, None if to is None else int(to)))
    yield from ()


def release(live: Live) -> Iterator[str]:
    """What was held goes on its way, and is named."""
    names = [type(effect.message).__name__ for _, effect in live.world.held]
    yield f"released: {', '.join(dict.fromkeys(names)) or 'nothing'}"
    live.world.release()


WORDS: Final[Mapping[str, Callable[..., Iterator[str]]]] = {
    "create": create,
    "send": send,
    "send_numbered": send_numbered,
    "count": count,
    "assess": assess,
    "told": deliveries,
    "wait": wait,
    "lose": lose,
    "restore": restore,
    "restore_later": restore_later,
    "power": power,
    "freeze": freeze,
    "alter": alter,
    "reassign": reassign,
    "hold": hold,
    "release": release,
}
