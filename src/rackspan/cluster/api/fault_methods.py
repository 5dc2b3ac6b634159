"""FaultMethods: the faults of an embedded cluster as blocking methods, with the names that the command line uses too."""

from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, TypeVar

from rackspan.cluster.api.faults import Faults
from rackspan.model.ids import RackId

T = TypeVar("T")


class FaultMethods(ABC):
    """faults.py for callers in other threads: every method returns when the fault is in effect."""

    _faults: Faults

    @abstractmethod
    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run it in the cluster's thread and wait for what it returns."""

    def lose_rack(self, rack: str | None) -> None:
        """Its brokers refuse connections and are fenced at once."""
        self._run(self._faults.lose_rack(rack_id(rack)))

    def restore_rack(self, rack: str | None) -> None:
        """Returns when its brokers are registered. On an idle cluster the ISR is complete within 2 s."""
        self._run(self._faults.restore_rack(rack_id(rack)))

    def kill(self, *brokers: int, power_loss: bool = False) -> None:
        """End the brokers' processes without a shutdown. After a power loss their logs may be incomplete (KIP-966)."""
        self._run(self._faults.kill(brokers, power_loss=power_loss))

    def stop(self, broker: int) -> None:
        """Controlled shutdown: the broker's leaderships are moved first."""
        self._run(self._faults.stop(broker))

    def restart(self, *brokers: int) -> None:
        """The inverse of kill and stop."""
        self._run(self._faults.restart(brokers))

    def freeze(self, *brokers: int) -> None:
        """The brokers accept connections and send no response."""
        self._run(self._faults.freeze(brokers))

    def thaw(self, *brokers: int) -> None:
        self._run(self._faults.thaw(brokers))

    def fence(self, broker: int) -> None:
        """The controller receives nothing from the broker."""
        self._run(self._faults.fence(broker))

    def unfence(self, broker: int) -> None:
        self._run(self._faults.unfence(broker))

    def lag(self, broker: int, milliseconds: int) -> None:
        """Messages of other brokers reach the broker this much later; 0 removes the delay."""
        self._run(self._faults.lag(broker, milliseconds))

    def slow_disk(self, broker: int, milliseconds: int) -> None:
        """The broker writes this much slower; 0 removes the delay."""
        self._run(self._faults.slow_disk(broker, milliseconds))

    def cut(self, one: int, other: int) -> None:
        """No message passes between two brokers, or between a broker and CONTROLLER."""
        self._run(self._faults.cut(one, other))

    def heal(self, one: int, other: int) -> None:
        self._run(self._faults.heal(one, other))

    def isolate_rack(self, rack: str | None) -> None:
        """Its brokers reach each other and their clients, no other broker and not the controller."""
        self._run(self._faults.isolate_rack(rack_id(rack)))

    def rejoin_rack(self, rack: str | None) -> None:
        self._run(self._faults.rejoin_rack(rack_id(rack)))

    def change_rack(self, broker: int, rack: str | None) -> None:
        """The broker is restarted in another rack, with the same disk."""
        self._run(self._faults.change_rack(broker, rack_id(rack)))

    def change_protocol_version(self, broker: int, version: str) -> None:
        """The broker is restarted with another inter.broker.protocol.version: below 0.10.0 it registers no rack."""
        self._run(self._faults.change_protocol_version(broker, version))

    def undo_faults(self) -> None:
        """The inverse of every fault at once. Returns when every broker may lead, in its first rack."""
        self._run(self._faults.undo())


def rack_id(rack: str | None) -> RackId | None:
    return None if rack is None else RackId(rack)
