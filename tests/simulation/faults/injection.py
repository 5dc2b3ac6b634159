"""How each fault strikes a world, and how it ends. Who is meant by a target is looked up when it strikes."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from rackspan.cluster.core.admin_messages import (
    AlterConfigs,
    AlterPartitionReassignments,
    AlterResource,
    ConfigOp,
    ElectLeaders,
    ReassignablePartition,
)
from rackspan.cluster.core.ids import CLIENT, CONTROLLER, NodeId
from rackspan.cluster.core.messages import ShutDown
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.model.ids import BrokerId
from tests.simulation.environment.machine import Machine
from tests.simulation.environment.parameters import FAULTS_MS, RACKS
from tests.simulation.faults.drawing import Fault, FaultKind, Target
from tests.simulation.judges.observer import Observer

if TYPE_CHECKING:
    from tests.simulation.world import Running

Key = TypeVar("Key")
Undo: TypeAlias = Callable[[], None]
Injection: TypeAlias = "Callable[[Running, Fault, list[Machine]], Undo]"


def schedule_faults(world: "Running") -> None:
    for fault in world.faults:
        world.clock.at(fault.at_ms, partial(_inject, world, fault))


def _inject(world: "Running", fault: Fault) -> None:
    world.judge_survival()
    world.trace.add(world.clock.now, "fault", fault.target.value, fault)
    undo = INJECTIONS[fault.kind](world, fault, _targets(world, fault))
    world.clock.at(min(world.clock.now + fault.duration_ms, FAULTS_MS), undo)


# Who


def _targets(world: "Running", fault: Fault) -> list[Machine]:
    chosen = _CHOSEN[fault.target](world, fault)
    return [world.machines[broker] for broker in sorted(chosen)]


def _any(world: "Running", fault: Fault) -> set[BrokerId]:
    brokers = world.parameters.brokers
    return {brokers[fault.choice % len(brokers)]}


def _observer(world: "Running", fault: Fault) -> Observer:
    """The partition that the fault is about."""
    return world.observers[world.partitions[fault.choice // 7 % len(world.partitions)]]


def _leader(world: "Running", fault: Fault) -> set[BrokerId]:
    leader = _observer(world, fault).evidence.committed.leader
    return {leader} if leader is not None else _any(world, fault)


def _follower(world: "Running", fault: Fault) -> set[BrokerId]:
    leader = _observer(world, fault).evidence.committed.leader
    others = [broker for broker in world.parameters.brokers if broker != leader]
    return {others[fault.choice % len(others)]}


def _joiner(world: "Running", fault: Fault) -> set[BrokerId]:
    observer = _observer(world, fault)
    leader = observer.evidence.committed.leader
    broker = None if leader is None else world.machines[leader].broker
    leading = None if broker is None else broker.leaders.get(observer.partition)
    pending = set() if leading is None or leading.isr.pending is None else set(leading.isr.pending)
    joining = sorted(pending - set(leading.isr.committed)) if leading is not None else []
    return {joining[0]} if joining else _follower(world, fault)


def _rack(world: "Running", fault: Fault) -> set[BrokerId]:
    racks = sorted({machine.rack or "" for machine in world.machines.values()})
    return _in_rack(world, racks[fault.choice % len(racks)])


def _leader_rack(world: "Running", fault: Fault) -> set[BrokerId]:
    (leader,) = _leader(world, fault)
    return _in_rack(world, world.machines[leader].rack or "")


def _other_racks(world: "Running", fault: Fault) -> set[BrokerId]:
    return set(world.parameters.brokers) - _leader_rack(world, fault)


def _in_rack(world: "Running", rack: str) -> set[BrokerId]:
    return {machine.id for machine in world.machines.values() if (machine.rack or "") == rack}


_CHOSEN: "Final[Mapping[Target, Callable[[Running, Fault], set[BrokerId]]]]" = {
    Target.ANY: _any,
    Target.LEADER: _leader,
    Target.FOLLOWER: _follower,
    Target.JOINER: _joiner,
    Target.RACK: _rack,
    Target.LEADER_RACK: _leader_rack,
    Target.OTHER_RACKS: _other_racks,
}


# What


def _crash(world: "Running", fault: Fault, machines: list[Machine]) -> Undo:
    return _down(world, machines)


def _down(world: "Running", machines: list[Machine]) -> Undo:
    for machine in machines:
        machine.down += 1
        if machine.broker is not None:
            world.stop_broker(machine)
    return lambda: _up(world, machines)


def _up(world: "Running", machines: list[Machine]) -> None:
    for machine in machines:
        machine.down -= 1
        if machine.down == 0 and machine.broker is None:
            world.start_broker(machine)


def _shut_down(world: "Running", fault: Fault, machines: list[Machine]) -> Undo:
    """A controlled shutdown. A broker that has not stopped by the end of the fault is killed."""
    for machine in machines:
        machine.down += 1
        if machine.broker is not None:
            world.deliver(CLIENT, machine.id, ShutDown())

    def undo() -> None:
        for machine in machines:
            if machine.broker is not None and machine.down == 1:
                world.stop_broker(machine)
        _up(world, machines)

    return undo


def _freeze(world: "Running", fault: Fault, machines: list[Machine]) -> Undo:
    for machine in machines:
        machine.frozen_until = max(machine.frozen_until, min(world.clock.now + fault.duration_ms, FAULTS_MS))
    return _nothing


def _cut(world: "Running", fault: Fault, machines: list[Machine]) -> Undo:
    inside = {machine.id for machine in machines}
    outside = {*world.machines, CONTROLLER} - inside
    return _links(world, [(a, b) for a in inside for b in outside], both=True)


def _cut_brokers(world: "Running", fault: Fault, machines: list[Machine]) -> Undo:
    inside = {machine.id for machine in machines}
    return _links(world, [(a, b) for a in inside for b in set(world.machines) - inside], both=True)


def _cut_controller(world: "Running", fault: Fault, machines: list[Machine]) -> Undo:
    return _links(world, [(machine.id, CONTROLLER) for machine in machines], both=fault.choice % 2 == 0)


def _deaf(world: "Running", fault: Fault, machines: list[Machine]) -> Undo:
    inside = {machine.id for machine in machines}
    outside = {*world.machines, CONTROLLER, CLIENT} - inside
    return _links(world, [(b, a) for a in inside for b in outside], both=False)


def _links(world: "Running", links: list[tuple[NodeId, NodeId]], *, both: bool) -> Undo:
    broken = [*links, *((b, a) for a, b in links)] if both else links
    return _counted(world.network.cut, broken)


def _slow(world: "Running", fault: Fault, machines: list[Machine]) -> Undo:
    return _counted(world.network.slow, [machine.id for machine in machines])


def _lag(world: "Running", fault: Fault, machines: list[Machine]) -> Undo:
    return _counted(world.network.lagging, [machine.id for machine in machines])


def _stale(world: "Running", fault: Fault, machines: list[Machine]) -> Undo:
    return _counted(world.network.stale, [machine.id for machine in machines])


def _delay_isr(world: "Running", fault: Fault, machines: list[Machine]) -> Undo:
    return _counted(world.network.isr_delayed, [machine.id for machine in machines])


def _counted(counts: dict[Key, int], keys: Sequence[Key]) -> Undo:
    for key in keys:
        counts[key] = counts.get(key, 0) + 1

    def undo() -> None:
        for key in keys:
            counts[key] = max(0, counts.get(key, 0) - 1)

    return undo


def _power(world: "Running", fault: Fault, machines: list[Machine]) -> Undo:
    return _lossy(world, fault, machines, _lose_tail)


def _disk(world: "Running", fault: Fault, machines: list[Machine]) -> Undo:
    return _lossy(world, fault, machines, _lose_disk)


def _lossy(world: "Running", fault: Fault, machines: list[Machine], lose: "Callable[[Running, Machine], None]") -> Undo:
    """In fewer racks than are required: more is beyond any promise. One rack at a time, so that something is left."""
    already = {rack for _, rack in world.observer.evidence.losses}
    allowed = [
        machine for machine in machines if len(already | {machine.rack or ""}) < world.parameters.min_insync_racks
    ][:1]
    rack = {machine.rack for machine in allowed}
    struck = [machine for machine in machines if machine.rack in rack]
    undo = _down(world, struck)
    for machine in struck:
        lose(world, machine)
    return undo


def _lose_tail(world: "Running", machine: Machine) -> None:
    if machine.lose_power():
        for observer in world.observers.values():
            observer.lost_tail(machine)


def _lose_disk(world: "Running", machine: Machine) -> None:
    machine.lose_disk()
    for observer in world.observers.values():
        observer.lost_disk(machine)


def _move(world: "Running", fault: Fault, machines: list[Machine]) -> Undo:
    """One broker is stopped, and starts in another rack."""
    if not machines:
        return _nothing
    machine = machines[0]
    undo = _down(world, [machine])
    others = [rack for rack in RACKS if rack != machine.rack]

    def moved() -> None:
        machine.rack = others[fault.choice % len(others)]
        undo()

    return moved


def _thresholds(world: "Running", fault: Fault, machines: list[Machine]) -> Undo:
    racks = fault.choice % 2 == 0
    key, usual = (
        ("min.insync.racks", world.parameters.min_insync_racks)
        if racks
        else ("min.insync.replicas", world.parameters.min_insync_replicas)
    )
    topic = _observer(world, fault).partition.topic
    _set(world, topic, key, 1 + (fault.choice // 2) % 3)
    return lambda: _set(world, topic, key, usual)


def _set(world: "Running", topic: str, key: str, value: int) -> None:
    op = ConfigOp(key, 0, str(value))
    world.send_to_controller(
        AlterConfigs(world.next("correlation_id"), (AlterResource(ConfigResourceType.TOPIC, topic, (op,)),))
    )


def _preferred(world: "Running", fault: Fault, machines: list[Machine]) -> Undo:
    world.send_to_controller(ElectLeaders(world.next("correlation_id"), (_observer(world, fault).partition,)))
    return _nothing


def _reassign(world: "Running", fault: Fault, machines: list[Machine]) -> Undo:
    """Removes one replica, or adds back the one that was removed; half of these reassignments are cancelled."""
    observer = _observer(world, fault)
    replicas = list(observer.evidence.committed.replicas)
    out = [broker for broker in world.parameters.brokers if broker not in replicas]
    if out:
        replicas.append(out[fault.choice % len(out)])
    elif len(replicas) > world.parameters.min_insync_racks:
        replicas.remove(replicas[fault.choice % len(replicas)])
    _request_reassignment(world, observer, tuple(replicas))
    return (lambda: _request_reassignment(world, observer, None)) if fault.choice % 2 else _nothing


def _request_reassignment(world: "Running", observer: Observer, replicas: tuple[BrokerId, ...] | None) -> None:
    observer.reassignment_requested(replicas)
    world.send_to_controller(
        AlterPartitionReassignments(
            world.next("correlation_id"), (ReassignablePartition(observer.partition, replicas),)
        )
    )
    observer.reassigning.request = None


def _relocate(world: "Running", fault: Fault, machines: list[Machine]) -> Undo:
    """Let any brokers hold it, as many as are required or more; a third are cancelled, a third are replaced later."""
    rng, observer = Random(fault.choice), _observer(world, fault)
    brokers = list(world.parameters.brokers)
    rng.shuffle(brokers)
    least = min(len(brokers), max(2, world.parameters.min_insync_racks))
    _request_reassignment(world, observer, tuple(brokers[: rng.randint(least, len(brokers))]))
    if fault.choice % 3 == 0:
        return lambda: _request_reassignment(world, observer, None)
    if fault.choice % 3 == 1:
        rng.shuffle(brokers)
        return lambda: _request_reassignment(world, observer, tuple(brokers[:least]))
    return _nothing


def _nothing() -> None:
    """Ends by itself."""


INJECTIONS: "Final[Mapping[FaultKind, Injection]]" = {
    FaultKind.CRASH: _crash,
    FaultKind.SHUT_DOWN: _shut_down,
    FaultKind.FREEZE: _freeze,
    FaultKind.CUT: _cut,
    FaultKind.CUT_BROKERS: _cut_brokers,
    FaultKind.CUT_CONTROLLER: _cut_controller,
    FaultKind.DEAF: _deaf,
    FaultKind.SLOW: _slow,
    FaultKind.LAG: _lag,
    FaultKind.STALE: _stale,
    FaultKind.POWER: _power,
    FaultKind.DISK: _disk,
    FaultKind.MOVE: _move,
    FaultKind.THRESHOLDS: _thresholds,
    FaultKind.PREFERRED: _preferred,
    FaultKind.REASSIGN: _reassign,
    FaultKind.RELOCATE: _relocate,
    FaultKind.DELAY_ISR: _delay_isr,
}
