"""Fetches that wait at a broker until there is something to read, as the embedded cluster's handler lets them wait."""

from collections.abc import Callable
from dataclasses import dataclass, field

from rackspan.cluster.core.broker import BrokerCore, ClientFetch, ReadResponse
from rackspan.cluster.core.ids import CorrelationId
from rackspan.model.ids import TopicPartition
from tests.simulation.environment.clock import Clock
from tests.simulation.environment.machine import Machine
from tests.simulation.judges.transactions import TransactionRules


@dataclass(eq=False, slots=True)
class _Waiting:
    machine: Machine
    broker: BrokerCore
    """The process that has it; it is lost with that process."""
    correlation_id: CorrelationId
    fetch: ClientFetch


@dataclass(slots=True)
class WaitingFetches:
    """Fetches of one partition each. Whatever makes it readable has to wake them, which TX6 judges."""

    clock: Clock
    rules: TransactionRules
    respond: Callable[[Machine, CorrelationId, ReadResponse], None]
    _waiting: list[_Waiting] = field(default_factory=list)

    def received(self, machine: Machine, correlation_id: CorrelationId, fetch: ClientFetch) -> None:
        assert machine.broker is not None
        read = fetch.read(machine.broker)
        if not fetch.waits(read):
            self.respond(machine, correlation_id, read.partitions[0])
            return
        waiting = _Waiting(machine, machine.broker, correlation_id, fetch)
        self._waiting.append(waiting)
        self.clock.after(fetch.max_wait_ms, lambda: self._time_out(waiting))

    def wake(self, machine: Machine, partition: TopicPartition) -> None:
        """The broker says that there may be more to read: its effect WatermarkMoved or LeadershipChanged."""
        for waiting in [each for each in self._waiting if each.broker is machine.broker]:
            if waiting.fetch.partitions[0].partition == partition:
                read = waiting.fetch.read(waiting.broker)
                if waiting.fetch.is_complete(read):
                    self._end(waiting, read.partitions[0])

    def _time_out(self, waiting: _Waiting) -> None:
        if waiting not in self._waiting:
            return
        machine = waiting.machine
        if machine.broker is not waiting.broker:
            self._waiting.remove(waiting)
        elif machine.frozen_until > self.clock.now:
            self.clock.at(machine.frozen_until, lambda: self._time_out(waiting))
        else:
            read = waiting.fetch.read(waiting.broker)
            self.rules.wait_ended(waiting.fetch, read)
            self._end(waiting, read.partitions[0])

    def _end(self, waiting: _Waiting, response: ReadResponse) -> None:
        self._waiting.remove(waiting)
        self.respond(waiting.machine, waiting.correlation_id, response)
