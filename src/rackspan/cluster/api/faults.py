"""Faults: lost racks, killed, frozen and fenced brokers, cut and slow links. Each fault has its inverse.

Runs in the cluster's event loop; fault_methods.py has the same names for callers in other threads.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from rackspan.cluster.core.ids import CONTROLLER, NodeId
from rackspan.cluster.host.assembly import Assembly
from rackspan.cluster.host.broker_host import BrokerHost
from rackspan.cluster.host.network import both_ways
from rackspan.errors import UsageError
from rackspan.model.ids import BrokerId, RackId

RETURN_SECONDS: Final = 10.0
"""How long a restarted broker may take to register."""

_METADATA_TIMEOUT_MS: Final = 1_000
"""The wait for a broker behind a slow link ends after this."""


class Faults:
    """The faults of one cluster, and their inverses."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._rack_of = {host.id: host.rack for host in assembly.hosts.values()}

    def host(self, broker: int) -> BrokerHost:
        """Errors: UsageError for a broker id that this cluster does not have."""
        host = self._assembly.hosts.get(BrokerId(broker))
        if host is None:
            raise UsageError(f"broker {broker}: this cluster has {_listed(self._assembly.hosts)}")
        return host

    def in_rack(self, rack: RackId | None) -> list[BrokerHost]:
        """Errors: UsageError for a rack that holds no broker."""
        hosts = [host for host in self._assembly.hosts.values() if host.rack == rack]
        if not hosts:
            racks = {str(host.rack) for host in self._assembly.hosts.values()}
            raise UsageError(f"rack {rack!r}: this cluster has {_listed(sorted(racks))}")
        return hosts

    # Faults that end a broker's process.

    async def kill(self, brokers: Sequence[int], *, power_loss: bool = False) -> None:
        """At once, without a shutdown. The controller fences the brokers at once, as if their sessions had timed out."""
        hosts = [self.host(broker) for broker in brokers]
        for host in hosts:
            host.kill(power_loss=power_loss)
        for host in hosts:
            self._assembly.controller.fence(host.id)
        await self._wait_for_metadata()

    async def stop(self, broker: int) -> None:
        """Controlled shutdown: leaderships are moved first, and the broker restarts with complete logs."""
        host = self.host(broker)
        host.shut_down()
        await self._assembly.wait_for(lambda: not host.running, RETURN_SECONDS)

    async def restart(self, brokers: Sequence[int]) -> None:
        """Running brokers are killed first. Returns when all are registered and may lead."""
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
        """The broker restarts in another rack, with the same disk."""
        host = self.host(broker)
        host.kill()
        host.rack = rack
        await self._assembly.start_brokers([host.id], RETURN_SECONDS)

    async def undo(self) -> None:
        """Undo every fault. Returns when every broker may lead, in its first rack."""
        self._assembly.network.heal_all()
        for host in self._assembly.hosts.values():
            host.slow_disk_ms = 0
            host.thaw()
            if host.rack != self._rack_of[host.id]:
                host.kill()
                host.rack = self._rack_of[host.id]
        await self._assembly.start_brokers(self._assembly.hosts, RETURN_SECONDS)
        await self._assembly.wait_for(lambda: all(map(self._assembly.is_active, self._assembly.hosts)), RETURN_SECONDS)

    async def change_protocol_version(self, broker: int, version: str) -> None:
        """The broker restarts with another inter.broker.protocol.version. Errors: UsageError."""
        from rackspan.cluster.zookeeper_era.protocol_version import version_error

        error = version_error(version)
        if error is not None:
            raise UsageError(error)
        host = self.host(broker)
        host.kill()
        host.protocol_version = version
        await self._assembly.start_brokers([host.id], RETURN_SECONDS)

    # Faults of a running broker.

    async def freeze(self, brokers: Sequence[int]) -> None:
        for broker in brokers:
            self.host(broker).freeze()

    async def thaw(self, brokers: Sequence[int]) -> None:
        for broker in brokers:
            self.host(broker).thaw()

    async def lag(self, broker: int, milliseconds: int) -> None:
        """Messages of other brokers reach it this much later; 0 removes the delay."""
        self._assembly.network.delay(milliseconds, *((other, self.host(broker).id) for other in self._others(broker)))

    async def slow_disk(self, broker: int, milliseconds: int) -> None:
        """Its writes take this much longer; 0 removes the delay."""
        self.host(broker).slow_disk_ms = milliseconds

    async def fence(self, broker: int) -> None:
        """Its link to the controller is cut; brokers and clients still reach it."""
        self._assembly.network.cut((self.host(broker).id, CONTROLLER))
        self._assembly.controller.fence(self.host(broker).id)
        await self._wait_for_metadata()

    async def unfence(self, broker: int) -> None:
        """Returns when the controller lets it lead again."""
        self._assembly.network.heal((self.host(broker).id, CONTROLLER))
        await self._assembly.wait_for(
            lambda: not self._assembly.image.brokers[self.host(broker).id].fenced, RETURN_SECONDS
        )

    # Faults of links.

    async def cut(self, one: NodeId, other: NodeId) -> None:
        """No message passes in either direction. CONTROLLER is a node too."""
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

    async def _wait_for_metadata(self) -> None:
        """Wait until the reachable brokers have the new metadata, so that a test's next request meets the fault."""
        cut_off = {to for source, to in self._assembly.network.cuts if source == CONTROLLER}
        for host in self._assembly.hosts.values():
            if host.running and not host.frozen and host.id not in cut_off:
                await host.runner.metadata_updates.wait_until_caught_up(_METADATA_TIMEOUT_MS)

    def _others(self, broker: int) -> list[NodeId]:
        return [other for other in self._assembly.hosts if other != broker]

    def _outside(self, rack: RackId | None) -> list[NodeId]:
        return [CONTROLLER, *(host.id for host in self._assembly.hosts.values() if host.rack != rack)]


def _listed(names: Iterable[object]) -> str:
    return ", ".join(map(str, names))
