"""Between the world and the judges: turns what changed inside a node into evidence, at the cost of what changed."""

from dataclasses import dataclass, field

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker.leadership.leader import Leader
from rackspan.cluster.core.controller import ControllerCore
from rackspan.cluster.core.ids import CONTROLLER, NodeId
from rackspan.cluster.core.log import PartitionLog
from rackspan.cluster.core.messages import LeadershipChanged, Produce, ProduceResponse
from rackspan.cluster.core.metadata import PartitionState
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition
from tests.simulation.environment.machine import Machine
from tests.simulation.judges.evidence import Committed, Entry, Evidence, LeaderView, Replica, Violation
from tests.simulation.judges.reassignments import ReassignmentRules, Request
from tests.simulation.judges.rules import Rules
from tests.simulation.judges.survival import Survival
from tests.simulation.kinds import WorldKind


@dataclass(slots=True)
class Mirror:
    """How much of a log the judges have: its last batch by identity, so that comparing costs no scan.

    `end` is its (end offset, last epoch): while that stands, so does the log.
    """

    log: PartitionLog | None = None
    last: RecordBatch | None = None
    end: tuple[int, int] = (-1, -1)


@dataclass(slots=True)
class Observer:
    """Looks at a node after each event it took."""

    kind: WorldKind
    partition: TopicPartition
    machines: dict[BrokerId, Machine]
    controller: ControllerCore
    evidence: Evidence = field(init=False)
    rules: Rules = field(init=False)
    survival: Survival = field(init=False)
    reassigning: ReassignmentRules = field(init=False)
    _mirrors: dict[BrokerId, Mirror] = field(init=False)
    _state: PartitionState | None = None
    _watermarks: dict[BrokerId, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.evidence = Evidence({machine.id: Replica(machine.rack) for machine in self.machines.values()})
        self.rules = Rules(self.kind, self.evidence)
        self.survival = Survival(self.kind, self.evidence)
        self.reassigning = ReassignmentRules(self.evidence)
        self._mirrors = {broker: Mirror() for broker in self.machines}

    # What a broker did

    def moved(self, node: NodeId) -> None:
        """An event is over, and it was this node's."""
        self.evidence.event += 1
        if node == CONTROLLER:
            self._controller_moved()
        else:
            self._broker_moved(self.machines[BrokerId(node)])

    def _broker_moved(self, machine: Machine) -> None:
        self._look_at_log(machine)
        self._look_at_watermark(machine)

    def _look_at_log(self, machine: Machine) -> None:
        log, mirror = machine.disk.logs.get(self.partition), self._mirrors[machine.id]
        if log is not mirror.log:
            mirror = self._another_log(machine, log)
        if log is None:
            return
        end = (log.end_offset, log.last_epoch)
        if end != mirror.end:
            mirror.end = end
            self._report_changes(machine, log, mirror)

    def _report_changes(self, machine: Machine, log: PartitionLog, mirror: Mirror) -> None:
        reported = len(self.evidence.replicas[machine.id].entries)
        if mirror.last is not None and not _holds(log, mirror.last):
            reported = self._truncated(machine, log)
        if log.end_offset > reported:
            for batch in log.read(reported, log.end_offset, 1 << 30):
                self._report_batch(machine, batch)
                mirror.last = batch

    def _another_log(self, machine: Machine, log: PartitionLog | None) -> Mirror:
        """A replica that was reassigned away is deleted; any other log that vanishes was truncated to nothing."""
        mirror = self._mirrors[machine.id] = Mirror(log)
        gone = self.evidence.truncated(machine.id, 0)
        known = None if machine.broker is None else machine.broker.image.partition(self.partition)
        if known is None or (machine.id, known.partition_epoch) not in self.evidence.not_replica:
            self.rules.truncated(machine.id, gone)
        return mirror

    def _report_batch(self, machine: Machine, batch: RecordBatch) -> None:
        for index in range(batch.record_count):
            entry = Entry(batch.leader_epoch, batch.max_timestamp + index)
            self.rules.appended(machine.id, entry)
            self.evidence.appended(machine.id, entry)

    def _truncated(self, machine: Machine, log: PartitionLog) -> int:
        """Find where the log and its mirror part; what the log lacks is reported. Returns the offset reported so far."""
        entries = self.evidence.replicas[machine.id].entries
        batches = log.batches
        kept = 0
        last: RecordBatch | None = None
        for batch in batches:
            if batch.last_offset >= len(entries) or entries[batch.base_offset] != _first_entry(batch):
                break
            kept, last = batch.last_offset + 1, batch
        self._mirrors[machine.id].last = last
        self.rules.truncated(machine.id, self.evidence.truncated(machine.id, kept))
        return kept

    def _look_at_watermark(self, machine: Machine) -> None:
        leader = None if machine.broker is None else machine.broker.leaders.get(self.partition)
        if leader is None:
            self._watermarks.pop(machine.id, None)
            return
        observed = (leader.leader_epoch, leader.log.high_watermark)
        if self._watermarks.get(machine.id) == observed:
            return
        self._watermarks[machine.id] = observed
        self.rules.watermark(_view(machine.id, leader), machine.incarnation, *observed)

    def leadership(self, machine: Machine, effect: LeadershipChanged) -> None:
        if effect.leads and effect.partition == self.partition:
            self.rules.leads(machine.id, machine.incarnation, effect.leader_epoch)

    def responded(self, machine: Machine, request: Produce, result: ProduceResponse) -> None:
        """A produce response is sent. Only what acks=all promised is held against the racks."""
        if result.error is not ErrorCode.NONE or request.acks != -1 or machine.broker is None:
            return
        leader = machine.broker.leaders.get(self.partition)
        batch = request.batches[0]
        if leader is None:
            raise Violation("I1", self.evidence.event, f"broker {machine.id} acknowledges and does not lead")
        entries = self.evidence.replicas[machine.id].entries
        for index in range(batch.record_count):
            offset = result.base_offset + index
            if offset >= len(entries) or entries[offset].record != batch.max_timestamp + index:
                raise Violation(
                    "I1",
                    self.evidence.event,
                    f"broker {machine.id} acknowledges offset {offset}, which does not hold the record",
                )
            self.rules.acknowledged(_view(machine.id, leader), offset, entries[offset])

    # What the controller did

    def _controller_moved(self) -> None:
        state = self.controller.image.partition(self.partition)
        if state is self._state or state is None:
            return
        self._state = state
        before, after = self.evidence.committed, self._committed(state)
        self.evidence.committed = after
        self.rules.committed(before, after)
        self.reassigning.committed(before, after)

    def _committed(self, state: PartitionState) -> Committed:
        """When each replica was last in the ISR is recorded here anew, not taken from the code under test."""
        others = set(self.machines) - set(state.replicas)
        self.evidence.not_replica.update((broker, state.partition_epoch) for broker in others)
        last_in_isr = dict(self.evidence.committed.last_in_isr)
        last_in_isr.update(dict.fromkeys(state.isr, state.partition_epoch))
        return Committed(
            state.leader if state.leader >= 0 else None,
            state.leader_epoch,
            state.partition_epoch,
            state.isr,
            state.elr,
            state.replicas,
            last_in_isr,
            state.adding,
            state.removing,
        )

    def reassignment_requested(self, replicas: tuple[BrokerId, ...] | None) -> None:
        """By an operator, at this event. The controller commits its change next, if it makes one."""
        self.reassigning.request = Request(replicas)

    # What the world did

    def started(self, machine: Machine) -> None:
        self.evidence.replicas[machine.id].stands_in(machine.rack)
        self._watermarks.pop(machine.id, None)

    def stopped(self, machine: Machine) -> None:
        self._watermarks.pop(machine.id, None)

    def lost_tail(self, machine: Machine) -> None:
        """The machine lost what was not flushed."""
        log = machine.disk.logs.get(self.partition)
        self._lost(machine, 0 if log is None else log.end_offset)

    def lost_disk(self, machine: Machine) -> None:
        self._lost(machine, 0)

    def _lost(self, machine: Machine, kept: int) -> None:
        self.evidence.lost(machine.id)
        self.evidence.truncated(machine.id, kept)
        log = machine.disk.logs.get(self.partition)
        batches = () if log is None else log.batches
        self._mirrors[machine.id] = Mirror(log, batches[-1] if batches else None)

    def settled(self) -> None:
        logs = {
            machine.id: self.evidence.replicas[machine.id].entries
            for machine in self.machines.values()
            if machine.broker is not None and machine.id in self.evidence.committed.replicas
        }
        leader = self.evidence.committed.leader
        self.survival.judge()
        self.rules.settled(logs, leader)
        self.reassigning.settled(demanded=self.kind.trusted)

    def digest(self) -> str:
        """Every log and the controller's last word, to be hashed."""
        logs = [f"{broker}:{replica.entries}" for broker, replica in sorted(self.evidence.replicas.items())]
        committed = self.evidence.committed
        return f"{logs} {committed.leader} {committed.leader_epoch} {committed.isr} {committed.elr}"


def _view(broker: BrokerId, leader: Leader) -> LeaderView:
    return LeaderView(broker, leader.isr.committed, leader.isr.partition_epoch, leader.config.required.min_insync_racks)


def _holds(log: PartitionLog, batch: RecordBatch) -> bool:
    """Whether this very batch still stands in the log: had it been cut off and written again, it would be another."""
    found = log.read(batch.base_offset, log.end_offset, 0)
    return bool(found) and found[0] is batch


def _first_entry(batch: RecordBatch) -> Entry:
    return Entry(batch.leader_epoch, batch.max_timestamp)
