"""What can go wrong in an embedded cluster, and be mended: the same names in tests, in programs and on the command line."""

from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, TypeVar

from rackspan.cluster.api.faults import Faults
from rackspan.model.ids import RackId

Outcome = TypeVar("Outcome")


class FaultMethods(ABC):
    """faults.py for callers outside the cluster's thread: every method returns when it is done."""

    _faults: Faults

    @abstractmethod
    def _do(self, work: Coroutine[Any, Any, Outcome]) -> Outcome:
        """Do it in the cluster's thread and wait."""

    def lose_rack(self, rack: str | None) -> None:
        """Its brokers refuse connections and are fenced at once."""
        self._do(self._faults.lose_rack(rack_id(rack)))

    def restore_rack(self, rack: str | None) -> None:
        """Returns when its brokers are registered; on an idle cluster the ISR is whole within 2 s."""
        self._do(self._faults.restore_rack(rack_id(rack)))

    def kill(self, *brokers: int, power_loss: bool = False) -> None:
        """End their processes without a word. After a power loss their logs are not trusted to be whole (KIP-966)."""
        self._do(self._faults.kill(brokers, power_loss=power_loss))

    def stop(self, broker: int) -> None:
        """End its process in order: leaderships are handed over first."""
        self._do(self._faults.stop(broker))

    def restart(self, *brokers: int) -> None:
        """The inverse of kill and stop."""
        self._do(self._faults.restart(brokers))

    def freeze(self, *brokers: int) -> None:
        """They accept connections and say nothing."""
        self._do(self._faults.freeze(brokers))

    def thaw(self, *brokers: int) -> None:
        self._do(self._faults.thaw(brokers))

    def fence(self, broker: int) -> None:
        """The controller hears nothing of it any more."""
        self._do(self._faults.fence(broker))

    def unfence(self, broker: int) -> None:
        self._do(self._faults.unfence(broker))

    def lag(self, broker: int, milliseconds: int) -> None:
        """It hears other brokers this much later; 0 takes it away."""
        self._do(self._faults.lag(broker, milliseconds))

    def slow_disk(self, broker: int, milliseconds: int) -> None:
        """It writes this much slower; 0 takes it away."""
        self._do(self._faults.slow_disk(broker, milliseconds))

    def cut(self, one: int, other: int) -> None:
        """Nothing passes between two brokers, or a broker and CONTROLLER."""
        self._do(self._faults.cut(one, other))

    def heal(self, one: int, other: int) -> None:
        self._do(self._faults.heal(one, other))

    def isolate_rack(self, rack: str | None) -> None:
        """Its brokers reach each other and their clients, nobody else."""
        self._do(self._faults.isolate_rack(rack_id(rack)))

    def rejoin_rack(self, rack: str | None) -> None:
        self._do(self._faults.rejoin_rack(rack_id(rack)))

    def change_rack(self, broker: int, rack: str | None) -> None:
        """The broker is restarted in another rack, its disk with it."""
        self._do(self._faults.change_rack(broker, rack_id(rack)))


def rack_id(rack: str | None) -> RackId | None:
    return None if rack is None else RackId(rack)
