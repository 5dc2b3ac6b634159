"""A coordinator of groups or transactions, its log and its clients in one object, so that a test decides the order of events."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.coordination import Append
from rackspan.cluster.core.groups import GroupCoordinator
from rackspan.cluster.core.messages import Respond
from rackspan.cluster.core.transactions import TransactionCoordinator
from rackspan.kafka_bytes.error_codes import ErrorCode

C = TypeVar("C", GroupCoordinator, TransactionCoordinator)
T = TypeVar("T")


@dataclass
class CoordinatorWorld(Generic[C]):
    """One partition of the coordinator's topic. `log` is what its replicas hold, `in_flight` what is not acknowledged."""

    now: int = 1_000
    epoch: int = 0
    log: list[RecordBatch] = field(default_factory=list)
    in_flight: deque[Append] = field(default_factory=deque)
    responses: dict[int, object] = field(default_factory=dict)
    request_count: int = 0

    def __post_init__(self) -> None:
        self.elect()

    def new_coordinator(self) -> C:
        """The coordinator of a broker that was just elected."""
        raise NotImplementedError

    def elect(self) -> None:
        self.epoch += 1
        self.coordinator: C = self.new_coordinator()
        self.took(self.coordinator.on_elected(self.now, 0, self.epoch, list(self.log)))

    def took(self, effects: Iterable[object]) -> None:
        for effect in effects:
            if isinstance(effect, Respond):
                assert effect.correlation_id not in self.responses, "a request gets one response"
                self.responses[effect.correlation_id] = effect.response
            else:
                self.emitted(effect)

    def emitted(self, effect: object) -> None:
        """An effect that is no response."""
        assert isinstance(effect, Append)
        self.in_flight.append(effect)

    # Requests.

    def send(self, request: Any) -> int:
        self.request_count += 1
        self.took(self.coordinator.on_request(self.now, self.request_count, request))
        return self.request_count

    def call(self, request: Any, response: type[T]) -> T:
        """The response, once everything is settled."""
        correlation_id = self.send(request)
        self.settle()
        return self.response(correlation_id, response)

    def response(self, correlation_id: int, response: type[T]) -> T:
        received = self.responses[correlation_id]
        assert isinstance(received, response)
        return received

    def passes(self, milliseconds: int) -> None:
        self.now += milliseconds
        self.took(self.coordinator.on_tick(self.now))

    # The log.

    def append(self, batch: RecordBatch) -> int:
        offset = self.log[-1].last_offset + 1 if self.log else 0
        self.log.append(batch.stamped(offset, self.epoch))
        return offset

    def acknowledge(self, error: ErrorCode = ErrorCode.NONE, kept: bool = True) -> None:
        """The oldest append in flight is decided; one that failed may have been kept all the same."""
        append = self.in_flight.popleft()
        offset = self.append(append.batch) if kept else -1
        self.took(self.coordinator.on_appended(self.now, append.write, error, offset))

    def settle(self) -> None:
        """Until every record is committed."""
        while self.in_flight:
            self.acknowledge()

    def fail_over(self, kept: int = 0) -> None:
        """The coordinator's broker is lost; of what was in flight, the first `kept` had reached the others."""
        in_flight = list(self.in_flight)
        self.in_flight.clear()
        effects = self.coordinator.on_resigned(self.now, 0)
        assert all(isinstance(effect, Respond) for effect in effects), "a coordinator that has resigned writes nothing"
        self.took(effects)
        for append in in_flight[:kept]:
            self.append(append.batch)
        self.elect()
