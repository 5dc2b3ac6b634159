"""Faults: lost racks, killed, paused and fenced brokers, cut and slow links. Each fault has its inverse.

The command line uses the same names.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from rackspan.cluster.api.blocking import ThreadedCluster, blocking
from rackspan.cluster.api.broker_configs import check_selector
from rackspan.cluster.core.ids import CONTROLLER, NodeId
from rackspan.cluster.host.broker_host import BrokerHost
from rackspan.cluster.host.network import both_ways
from rackspan.errors import UsageError
from rackspan.model.ids import BrokerId, RackId

RETURN_SECONDS: Final = 60.0
"""How long a restarted broker may take to register: a fraction of a second unless the machine is overloaded."""

_METADATA_TIMEOUT_MS: Final = 1_000
"""The wait for a broker behind a slow link ends after this."""


class Faults(ThreadedCluster):
    """The faults of an embedded cluster, and their inverses. Every method returns when its fault is in effect."""

    # Faults that end a broker's process.

    @blocking
    async def kill(self, *brokers: int, power_loss: bool = False) -> None:
        """End the brokers' processes without a shutdown. After a power loss their logs may be incomplete (KIP-966)."""
        await self._kill([self._host(broker) for broker in brokers], power_loss=power_loss)

    @blocking
    async def stop(self, *brokers: int) -> None:
        """Controlled shutdown: leaderships are moved first, and the brokers restart with complete logs."""
        hosts = [self._host(broker) for broker in brokers]
        for host in hosts:
            host.shut_down()
        await self._running.wait_for(lambda: not any(host.running for host in hosts), RETURN_SECONDS)

    @blocking
    async def restart(self, *brokers: int) -> None:
        """The inverse of kill and stop; running brokers are killed first. Returns when all are registered and may lead."""
        await self._restart([self._host(broker) for broker in brokers])

    @blocking
    async def lose_rack(self, rack: str | None) -> None:
        """Its brokers refuse connections and are fenced at once."""
        await self._kill(self._in_rack(rack))

    @blocking
    async def restore_rack(self, rack: str | None) -> None:
        """Returns when its brokers are registered. On an idle cluster the ISR is complete within 2 s."""
        stopped = [host.id for host in self._in_rack(rack) if not host.running]
        await self._running.start_brokers(stopped, RETURN_SECONDS)

    @blocking
    async def change_rack(self, broker: int, rack: str | None) -> None:
        """The broker restarts in another rack, with the same disk."""
        host = self._host(broker)
        host.rack = rack_id(rack)
        await self._restart([host])

    @blocking
    async def change_protocol_version(self, broker: int, version: str) -> None:
        """The broker restarts with another inter.broker.protocol.version: below 0.10.0 it registers no rack. Errors: UsageError."""
        from rackspan.cluster.zookeeper_era.protocol_version import version_error

        error = version_error(version)
        if error is not None:
            raise UsageError(error)
        host = self._host(broker)
        host.protocol_version = version
        await self._restart([host])

    @blocking
    async def change_replica_selector(self, broker: int, selector: str | None) -> None:
        """The broker restarts with another replica.selector.class: only the partitions that it leads are read by that. Errors: UsageError."""
        check_selector(selector)
        host = self._host(broker)
        host.replica_selector = selector
        await self._restart([host])

    @blocking
    async def undo_faults(self) -> None:
        """The inverse of every fault at once. Returns when every broker may lead, with its first rack and settings."""
        cluster = self._running
        cluster.network.heal_all()
        for host in cluster.hosts.values():
            host.slow_disk_ms = 0
            host.resume()
            host.restore_settings()
        await cluster.start_brokers(cluster.hosts, RETURN_SECONDS)
        await cluster.wait_for(lambda: all(map(cluster.is_active, cluster.hosts)), RETURN_SECONDS)

    # Faults of a running broker.

    @blocking
    async def pause(self, *brokers: int) -> None:
        """The brokers accept connections and send no response."""
        for host in [self._host(broker) for broker in brokers]:
            host.pause()

    @blocking
    async def resume(self, *brokers: int) -> None:
        for host in [self._host(broker) for broker in brokers]:
            host.resume()

    @blocking
    async def lag(self, broker: int, milliseconds: int) -> None:
        """Messages of other brokers reach the broker this much later; 0 removes the delay."""
        delayed = self._host(broker).id
        others = [other for other in self._running.hosts if other != delayed]
        self._running.network.delay(milliseconds, *((other, delayed) for other in others))

    @blocking
    async def slow_disk(self, broker: int, milliseconds: int) -> None:
        """The broker writes this much slower; 0 removes the delay."""
        self._host(broker).slow_disk_ms = milliseconds

    @blocking
    async def fence(self, broker: int) -> None:
        """The controller receives nothing from the broker; brokers and clients still reach it."""
        fenced = self._host(broker).id
        self._running.network.cut((fenced, CONTROLLER))
        self._running.controller.fence(fenced)
        await self._wait_for_metadata()

    @blocking
    async def unfence(self, broker: int) -> None:
        """Returns when the controller lets it lead again."""
        fenced = self._host(broker).id
        self._running.network.heal((fenced, CONTROLLER))
        await self._running.wait_for(lambda: not self._running.image.brokers[fenced].fenced, RETURN_SECONDS)

    # Faults of links.

    @blocking
    async def cut(self, one: NodeId, other: NodeId) -> None:
        """No message passes in either direction between two brokers, or between a broker and CONTROLLER."""
        self._running.network.cut(*both_ways(one, [other]))

    @blocking
    async def heal(self, one: NodeId, other: NodeId) -> None:
        self._running.network.heal(*both_ways(one, [other]))

    @blocking
    async def isolate_rack(self, rack: str | None) -> None:
        """Its brokers reach each other and their clients, no other broker and not the controller."""
        for host in self._in_rack(rack):
            self._running.network.cut(*both_ways(host.id, self._outside(rack)))

    @blocking
    async def rejoin_rack(self, rack: str | None) -> None:
        for host in self._in_rack(rack):
            self._running.network.heal(*both_ways(host.id, self._outside(rack)))

    def _host(self, broker: int) -> BrokerHost:
        """Errors: UsageError for a broker id that this cluster does not have."""
        hosts = self._running.hosts
        host = hosts.get(BrokerId(broker))
        if host is None:
            raise UsageError(f"broker {broker}: this cluster has {_listed(hosts)}")
        return host

    def _in_rack(self, rack: str | None) -> list[BrokerHost]:
        """Errors: UsageError for a rack that holds no broker."""
        hosts = [host for host in self._running.hosts.values() if host.rack == rack]
        if not hosts:
            racks = {str(host.rack) for host in self._running.hosts.values()}
            raise UsageError(f"rack {rack!r}: this cluster has {_listed(sorted(racks))}")
        return hosts

    async def _kill(self, hosts: Sequence[BrokerHost], *, power_loss: bool = False) -> None:
        """At once, without a shutdown. The controller fences the brokers at once, as if their sessions had timed out."""
        for host in hosts:
            host.kill(power_loss=power_loss)
        for host in hosts:
            self._running.controller.fence(host.id)
        await self._wait_for_metadata()

    async def _restart(self, hosts: Sequence[BrokerHost]) -> None:
        for host in hosts:
            host.kill()
        await self._running.start_brokers([host.id for host in hosts], RETURN_SECONDS)

    async def _wait_for_metadata(self) -> None:
        """Wait until the reachable brokers have the new metadata, so that a test's next request meets the fault."""
        cut_off = {to for source, to in self._running.network.cuts if source == CONTROLLER}
        for host in self._running.hosts.values():
            if host.running and not host.paused and host.id not in cut_off:
                await host.runner.metadata_updates.wait_until_caught_up(_METADATA_TIMEOUT_MS)

    def _outside(self, rack: str | None) -> list[NodeId]:
        return [CONTROLLER, *(host.id for host in self._running.hosts.values() if host.rack != rack)]


def rack_id(rack: str | None) -> RackId | None:
    return None if rack is None else RackId(rack)


def _listed(names: Iterable[object]) -> str:
    return ", ".join(map(str, names))
