"""What can go wrong on purpose, each fault with its inverse. Racks, brokers and links are named as in the cluster.

Runs in the cluster's loop; embedded.py hands it in from outside.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from rackspan.cluster.core.ids import CONTROLLER, NodeId
from rackspan.cluster.core.protocol_version import complaint
from rackspan.cluster.host.assembly import Assembly
from rackspan.cluster.host.broker_host import BrokerHost
from rackspan.cluster.host.network import both_ways
from rackspan.errors import UsageError
from rackspan.model.ids import BrokerId, RackId

RETURN_SECONDS: Final = 10.0
"""How long a broker that is started again may take to register."""

_HEARD_MS: Final = 1_000
"""A broker behind a slow link is not waited for longer."""


class Faults:
    """Of one cluster."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._rack_of = {host.id: host.rack for host in assembly.hosts.values()}

    def host(self, broker: int) -> BrokerHost:
        """Errors: UsageError for a broker that is none of this cluster's."""
        found = self._assembly.hosts.get(BrokerId(broker))
        if found is None:
            raise UsageError(f"broker {broker}: this cluster has {_listed(self._assembly.hosts)}")
        return found

    def in_rack(self, rack: RackId | None) -> list[BrokerHost]:
        """Errors: UsageError for a rack that holds no broker."""
        found = [host for host in self._assembly.hosts.values() if host.rack == rack]
        if not found:
            racks = {str(host.rack) for host in self._assembly.hosts.values()}
            raise UsageError(f"rack {rack!r}: this cluster has {_listed(sorted(racks))}")
        return found

    # A broker's process ends, and another begins.

    async def kill(self, brokers: Sequence[int], *, power_loss: bool = False) -> None:
        """At once and without a word; the controller learns of it at once too, as if the session had run out."""
        hosts = [self.host(broker) for broker in brokers]
        for host in hosts:
            host.kill(power_loss=power_loss)
        for host in hosts:
            self._assembly.controller.fence(host.id)
        await self._heard()

    async def stop(self, broker: int) -> None:
        """In order: its leaderships are handed over first, and its logs are known to be whole when it comes back."""
        host = self.host(broker)
        host.shut_down()
        await self._assembly.until(lambda: not host.running, RETURN_SECONDS)

    async def restart(self, brokers: Sequence[int]) -> None:
        """Those that are running are killed first. Returns when they are registered and may lead."""
        hosts = [self.host(broker) for broker in brokers]
        for host in hosts:
            host.kill()
        await self._assembly.start_brokers([host.id for host in hosts], RETURN_SECONDS)

    async def lose_rack(self, rack: RackId | None) -> None:
        await self.kill([host.id for host in self.in_rack(rack)])

    async def restore_rack(self, rack: RackId | None) -> None:
        stopped = [host.id for host in self.in_rack(rack) if not host.running]
        await self._assembly.start_brokers(stopped, RETURN_SECONDS)

    async def change_rack(self, broker: int, rack: RackId | None) -> None:
        """The broker comes back elsewhere, its disk with it."""
        host = self.host(broker)
        host.kill()
        host.rack = rack
        await self._assembly.start_brokers([host.id], RETURN_SECONDS)

    async def undo(self) -> None:
        """Take back whatever is wrong, by whichever fault. Returns when every broker may lead, in the rack it began in."""
        self._assembly.network.mend()
        for host in self._assembly.hosts.values():
            host.slow_disk_ms = 0
            host.thaw()
            if host.rack != self._rack_of[host.id]:
                host.kill()
                host.rack = self._rack_of[host.id]
        await self._assembly.start_brokers(self._assembly.hosts, RETURN_SECONDS)
        await self._assembly.until(lambda: all(map(self._assembly.is_active, self._assembly.hosts)), RETURN_SECONDS)

    async def change_protocol_version(self, broker: int, version: str) -> None:
        """The broker comes back with another inter.broker.protocol.version. Errors: UsageError."""
        wrong = complaint(version)
        if wrong is not None:
            raise UsageError(wrong)
        host = self.host(broker)
        host.kill()
        host.protocol_version = version
        await self._assembly.start_brokers([host.id], RETURN_SECONDS)

    # A broker runs, and something is wrong with it.

    async def freeze(self, brokers: Sequence[int]) -> None:
        for broker in brokers:
            self.host(broker).freeze()

    async def thaw(self, brokers: Sequence[int]) -> None:
        for broker in brokers:
            self.host(broker).thaw()

    async def lag(self, broker: int, milliseconds: int) -> None:
        """Whatever it hears from other brokers comes this much later; 0 takes it away."""
        self._assembly.network.delay(milliseconds, *((other, self.host(broker).id) for other in self._others(broker)))

    async def slow_disk(self, broker: int, milliseconds: int) -> None:
        """Whatever it writes takes this much longer; 0 takes it away."""
        self.host(broker).slow_disk_ms = milliseconds

    async def fence(self, broker: int) -> None:
        """The controller hears nothing of it any more; brokers and clients do."""
        self._assembly.network.cut((self.host(broker).id, CONTROLLER))
        self._assembly.controller.fence(self.host(broker).id)
        await self._heard()

    async def unfence(self, broker: int) -> None:
        """Returns when the controller lets it lead again."""
        self._assembly.network.heal((self.host(broker).id, CONTROLLER))
        await self._assembly.until(
            lambda: not self._assembly.image.brokers[self.host(broker).id].fenced, RETURN_SECONDS
        )

    # Links.

    async def cut(self, one: NodeId, other: NodeId) -> None:
        """Nothing passes, either way; CONTROLLER is a node too."""
        self._assembly.network.cut(*both_ways(one, [other]))

    async def heal(self, one: NodeId, other: NodeId) -> None:
        self._assembly.network.heal(*both_ways(one, [other]))

    async def isolate_rack(self, rack: RackId | None) -> None:
        """Its brokers reach each other, no other broker and no controller; clients reach them all."""
        for host in self.in_rack(rack):
            self._assembly.network.cut(*both_ways(host.id, self._outside(rack)))

    async def rejoin_rack(self, rack: RackId | None) -> None:
        for host in self.in_rack(rack):
            self._assembly.network.heal(*both_ways(host.id, self._outside(rack)))

    async def _heard(self) -> None:
        """Whoever hears the controller has heard: a test's next request meets brokers that know what it did."""
        deaf = {to for source, to in self._assembly.network.cuts if source == CONTROLLER}
        for host in self._assembly.hosts.values():
            if host.running and not host.frozen and host.id not in deaf:
                await host.runner.metadata_updates.wait_until_caught_up(_HEARD_MS)

    def _others(self, broker: int) -> list[NodeId]:
        return [other for other in self._assembly.hosts if other != broker]

    def _outside(self, rack: RackId | None) -> list[NodeId]:
        return [CONTROLLER, *(host.id for host in self._assembly.hosts.values() if host.rack != rack)]


def _listed(names: Iterable[object]) -> str:
    return ", ".join(map(str, names))
