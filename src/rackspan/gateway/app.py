"""The gateway of one process, from finished parts: listeners, clients, and what decides about whole requests."""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from rackspan.errors import UsageError
from rackspan.gateway.backend import Backend
from rackspan.gateway.clients.connections import Clients
from rackspan.gateway.clients.listeners import Listeners
from rackspan.gateway.config import GatewayConfig
from rackspan.gateway.core.acknowledgement.guard import AcknowledgementMode
from rackspan.gateway.core.endpoints import Addresses
from rackspan.gateway.core.record_bytes import RecordBytes
from rackspan.gateway.core.value_warnings import rack_warnings
from rackspan.gateway.guarding import Guarding, open_guarding
from rackspan.gateway.handlers.admin import AdminHandler
from rackspan.gateway.handlers.fetch import FetchHandler
from rackspan.gateway.handlers.produce import forward_produce
from rackspan.gateway.net.byte_flow import Shared, Take
from rackspan.gateway.net.frames import FrameMemory
from rackspan.gateway.upstream.config_topic import ConfigTopic
from rackspan.gateway.upstream.heartbeats import Heartbeats
from rackspan.gateway.upstream.record_topics import follow_record_topics, settle
from rackspan.wire.apis import ApiKey

log = logging.getLogger(__name__)

LAST_REQUESTS_SECONDS: Final = 2.0
"""Time limit of the last reading of metadata and the end of the registration: a gateway ends on SIGTERM even if no broker responds."""

LAST_RESPONSES_SECONDS: Final = 1.0
"""Before the time limit of the end: what is held by then is refused, so that its clients receive that."""

LOGGED_FLOWS_MAX: Final = 50
"""Lines of the log at the end that count bytes."""

_RESTART: Final = (
    "bootstrap_servers",
    "command_config",
    "controllers_command_config",
    "broker_identity",
    "listen_host",
    "first_port",
    "http",
    "mode",
    "controllers",
    "config_topic",
    "create_config_topic",
    "gateway_id",
    "request_memory_bytes",
    "placer",
    "rack_locator",
    "rack_locator_properties",
    "log_format",
)
"""Settings that a reload does not change: other processes and clients depend on them, or they are read at start only."""


class Gateway:
    """Listeners before every broker of a cluster, on the running event loop; made by `open_gateway`.

    `guarding` is None in mode off, `admin` if it would take part in no request, `heartbeats` without a config topic and in workers
    but the first.
    """

    def __init__(
        self,
        backend: Backend,
        listeners: Listeners,
        clients: Clients,
        guarding: Guarding | None,
        admin: AdminHandler | None,
        fetch: FetchHandler,
        heartbeats: Heartbeats | None = None,
    ) -> None:
        self.backend = backend
        self.cluster = backend.cluster
        self.policies = backend.policies
        self.listeners = listeners
        self.clients = clients
        self.guarding = guarding
        self.admin = admin
        self.fetch = fetch
        self.heartbeats = heartbeats
        self.record_bytes = clients.shared.record_bytes
        self.draining = False
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Listen for every broker. Errors: UsageError."""
        self.cluster.on_refresh = self.listeners.follow_brokers
        self.clients.warn_of_open_files()
        self._log_warnings()
        clients = self.clients.close_slow(), self.clients.close_gone()
        for work in (self.cluster.follow(), *clients, follow_record_topics(self.record_bytes, self.cluster)):
            self._run(work)
        for work in self.guarding.tasks() if self.guarding is not None else ():
            self._run(work)
        self.listeners.open()
        if self.heartbeats is not None:
            # A gateway that cannot listen serves nobody, and is not registered.
            self._run(self.heartbeats.follow(self._of_gateways))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def config(self) -> GatewayConfig:
        """The config that was read last."""
        return self.backend.config

    @property
    def bootstrap_servers(self) -> str:
        """The advertised addresses, for clients."""
        return self.listeners.bootstrap_servers

    def warnings(self) -> list[str]:
        """Sentences about the release, racks and values that an operator should correct; clients are served all the same."""
        of_racks = rack_warnings(self.cluster.all_brokers()) if self.config.reads_racks else ()
        of_values = self.backend.warnings(self._config_topic)
        of_heartbeats = () if self.heartbeats is None else self.heartbeats.warnings()
        return [*self.backend.release_warnings, *of_racks, *of_values, *self._of_gateways(), *of_heartbeats]

    def _of_gateways(self) -> list[str]:
        return [difference.warning for difference in self.backend.differences(self._config_topic)]

    @property
    def _config_topic(self) -> ConfigTopic | None:
        return None if self.guarding is None else self.guarding.config_topic

    def _log_warnings(self) -> None:
        for warning in (*self.warnings(), *self.backend.connection_warnings(), *self.config.exposed_secrets()):
            log.warning("%s", warning)

    async def drain(self, seconds: float) -> int:
        """Accept nothing more, let every request end that was received, and close. How many connections were cut off."""
        self.draining = True
        self.listeners.close()
        if self.guarding is not None:
            self.guarding.guard.ends_at = asyncio.get_running_loop().time() + max(
                seconds / 2, seconds - LAST_RESPONSES_SECONDS
            )
        await self.clients.drain(seconds)
        left = len(self.clients.sessions)
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_REQUESTS_SECONDS):
                heartbeats = () if self.heartbeats is None else (self.heartbeats.end(),)
                await asyncio.gather(settle(self.record_bytes, self.cluster), *heartbeats)
        # What no broker described counts all the same.
        self.record_bytes.settle(self.record_bytes.unsettled(), {}, {})
        for line in self.record_bytes.summary(LOGGED_FLOWS_MAX):
            log.info("%s", line)
        self.close()
        return left

    def reload(self, config: GatewayConfig) -> None:
        """Take over a config that was read again. Connections stay open. Errors: UsageError for what needs a restart."""
        if config.readers.is_on != self.config.readers.is_on:
            raise UsageError("[readers] cannot begin or end while the gateway runs; restart it")
        if (config.tls is None) is not (self.config.tls is None):
            raise UsageError("listen.tls cannot begin or end while the gateway runs; restart it")
        for name in _RESTART:
            if getattr(config, name) != getattr(self.config, name):
                raise UsageError(f"{config.key_of(name)} cannot change while the gateway runs; restart it")
        self.listeners.refuse_moved(config)
        self.backend.reload(config)
        self.listeners.config = self.clients.config = config
        self.clients.shared.max_request_bytes = config.max_request_bytes
        self.record_bytes.topics_max, self.record_bytes.clients_max = (
            config.counters_topics_max,
            config.counters_clients_max,
        )
        if self.guarding is not None:
            self.guarding.reload(config)
        self.fetch.racks = config.readers
        self.clients.close_removed()
        self.clients.warn_of_open_files()
        self.listeners.follow_brokers()
        self._log_warnings()

    def close(self) -> None:
        self.listeners.close()
        self.clients.close()
        for task in tuple(self._tasks):
            task.cancel()
        if self.guarding is not None:
            self.guarding.close()
        if self.heartbeats is not None:
            self.heartbeats.close()
        self.backend.close()


async def open_gateway(config: GatewayConfig, *, shared: bool = False, registers: bool = True) -> Gateway:
    """A gateway that listens. `shared`: other processes listen at the same ports, one of which `registers`. Errors: RackspanError."""
    backend = Backend(config)
    try:
        await backend.connect()
        if not backend.cluster.by_id:
            raise UsageError(f"{config.bootstrap_servers}: the cluster reports no broker; is it starting?")
        await backend.cluster.require_proofs()
        gateway = await _assembled(backend, shared=shared, registers=registers)
    except BaseException:
        backend.close()
        raise
    try:
        gateway.start()
    except BaseException:
        gateway.close()
        raise
    return gateway


async def _assembled(backend: Backend, *, shared: bool, registers: bool) -> Gateway:
    """The parts of a gateway. Forwarding, judging only, or guarding is chosen here, once."""
    config = backend.config
    listeners = Listeners(config, backend.cluster, lambda broker, client: clients.accept(broker, client), shared=shared)
    addresses = Addresses(listeners.advertised, backend.cluster.rack)
    guarding = None if config.mode is AcknowledgementMode.OFF else await open_guarding(backend, addresses)
    config_topic = None if guarding is None else guarding.config_topic
    fetch = FetchHandler(config.readers)
    takes: dict[int, Take] = {
        ApiKey.PRODUCE: forward_produce if guarding is None else guarding.produce.take,
        ApiKey.FETCH: fetch.take,
    }
    admin = None
    if backend.placer is not None:
        backend.placer.open()
    if guarding is not None or backend.placer is not None:
        admin = AdminHandler(backend, addresses, config_topic)
        takes |= dict.fromkeys(admin.api_keys, admin.take)
    sessions = Shared(
        addresses,
        takes,
        config.max_request_bytes,
        FrameMemory(config.request_memory_bytes),
        RecordBytes(config.counters_topics_max, config.counters_clients_max),
        fetch.rack_of,
        lambda: backend.cluster.cluster_id,
    )
    clients = Clients(config, backend.cluster, backend.tls, sessions)
    heartbeats = None
    if registers and config.config_topic is not None:
        heartbeats = backend.heartbeats(config.config_topic)
    return Gateway(backend, listeners, clients, guarding, admin, fetch, heartbeats)
