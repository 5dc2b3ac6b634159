"""The machine of one broker: its disk, its port, and the broker's process while one runs.

A kill ends the process, a restart creates a new one. The disk and the port stay.
"""

import asyncio
from dataclasses import replace

from rackspan.cluster.core import messages
from rackspan.cluster.core.broker import BrokerIdentity
from rackspan.cluster.core.configs import LATEST_PROTOCOL, PROTOCOL_VERSION
from rackspan.cluster.core.disk import Disk
from rackspan.cluster.core.ids import CLIENT, NO_EPOCH, NodeId
from rackspan.cluster.host.broker_runner import BrokerRunner
from rackspan.cluster.host.shared_services import SharedServices
from rackspan.cluster.net import BrokerServer
from rackspan.model.ids import BrokerId, RackId


class BrokerHost:
    """One broker, running or not. `slow_disk_ms` may be changed from outside, and `rack`, `protocol_version` and
    `replica_selector` for its next start."""

    def __init__(self, shared: SharedServices, broker: BrokerId, rack: RackId | None) -> None:
        self.id = broker
        self.rack = rack
        self.protocol_version = shared.settings.extra_configs.get(PROTOCOL_VERSION, LATEST_PROTOCOL)
        self.replica_selector = shared.settings.replica_selector_class
        self._first_start = (self.rack, self.protocol_version, self.replica_selector)
        self.slow_disk_ms = 0
        self.disk = Disk()
        self.server = BrokerServer()
        self._shared = shared
        self._runner: BrokerRunner | None = None
        self.incarnation = 0
        self.start_error: str | None = None
        """Why the last start was refused."""

    @property
    def running(self) -> bool:
        return self._runner is not None

    @property
    def paused(self) -> bool:
        return self.server.paused

    @property
    def runner(self) -> BrokerRunner:
        if self._runner is None:
            raise asyncio.CancelledError(f"broker {self.id} is not running")
        return self._runner

    async def start(self) -> None:
        """Start a new process, which registers with the controller by itself."""
        self.incarnation += 1
        self.start_error = None
        identity = BrokerIdentity(self.id, self.incarnation, self._registered_rack(), *self.server.address)
        settings = replace(self._shared.settings, replica_selector_class=self.replica_selector)
        shared = replace(self._shared, settings=settings)
        runner = BrokerRunner(shared, identity, self.rack, self.disk, self.kill, self._refuse)
        runner.paused = self.paused
        await self.server.open(runner)
        self._runner = runner
        self._shared.traffic.racks[self.id] = identity.rack
        self._shared.network.attach(self.id, self._receive)
        self.tick(self._shared.clock.now())

    def _registered_rack(self) -> RackId | None:
        """The rack that the broker's protocol version can register."""
        if self.protocol_version == LATEST_PROTOCOL:
            return self.rack
        # Formats of the ZooKeeper era: imported only where a rolling upgrade is tested.
        from rackspan.cluster.zookeeper_era import registered_rack

        return registered_rack(self.rack, *self.server.address, self.protocol_version)

    def restore_settings(self) -> None:
        """Take back what was changed since the first start. A process that runs with it is killed."""
        if (self.rack, self.protocol_version, self.replica_selector) != self._first_start:
            self.kill()
            self.rack, self.protocol_version, self.replica_selector = self._first_start

    def shut_down(self) -> None:
        """Begin a controlled shutdown. The process ends when the controller has moved its leaderships."""
        if self._runner is not None:
            self._runner.receive(CLIENT, messages.ShutDown())

    def kill(self, *, power_loss: bool = False) -> None:
        """End the process at once: connections are closed, new ones are refused.

        A killed process leaves its logs complete, since the machine still writes them. A machine without power does not.
        """
        if self._runner is None:
            return
        runner, self._runner = self._runner, None
        if not power_loss and runner.core.broker_epoch != NO_EPOCH:
            self.disk.clean_shutdown_epoch = runner.core.broker_epoch
        self._shared.network.detach(self.id)
        runner.stop()
        self.server.close()

    def _refuse(self, reason: str) -> None:
        self.start_error = reason
        self.kill()

    def pause(self) -> None:
        """Stop the broker as SIGSTOP does: connections are accepted, no request gets a response, messages wait."""
        if self._runner is not None:
            self._runner.paused = True
        self.server.pause()

    def resume(self) -> None:
        if self._runner is not None:
            self._runner.resume()
        self.server.resume()

    def tick(self, now: int) -> None:
        if self._runner is not None:
            self._runner.tick(now)

    def _receive(self, source: NodeId, message: messages.Message) -> None:
        """A message from another broker or the controller."""
        if isinstance(message, messages.FetchMetadataResponse) and self.protocol_version != LATEST_PROTOCOL:
            from rackspan.cluster.zookeeper_era import received_metadata

            message = received_metadata(message, self.protocol_version)
        if self.slow_disk_ms and isinstance(message, messages.ReplicaFetchResponse):
            asyncio.get_running_loop().call_later(self.slow_disk_ms / 1000, self.runner.receive, source, message)
        else:
            self.runner.receive(source, message)
