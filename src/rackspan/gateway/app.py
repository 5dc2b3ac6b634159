"""The gateway of one process: listeners, sessions, and what is decided about whole requests."""

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

from rackspan.client.brokers import addresses
from rackspan.client.config import kafka_python_settings, read_properties
from rackspan.client.login import login_of
from rackspan.errors import ClusterUnreachable, MalformedRequest, RackspanError, UsageError
from rackspan.gateway.config import GatewayConfig
from rackspan.gateway.core.acknowledgement.guard import AcknowledgementGuard
from rackspan.gateway.core.acknowledgement.rules import AcknowledgementMode, GuardSettings
from rackspan.gateway.core.policies import Policies
from rackspan.gateway.core.produce import acks_of
from rackspan.gateway.core.topic_configs import TOPIC
from rackspan.gateway.core.value_warnings import values_warnings
from rackspan.gateway.handlers.admin import AdminHandler
from rackspan.gateway.handlers.produce import ProduceHandler
from rackspan.gateway.handlers.refusal_log import PERIOD_SECONDS, RefusalLog
from rackspan.gateway.net.buffers import BufferPool
from rackspan.gateway.net.channel import connected, handshake, sends
from rackspan.gateway.net.exchange import Exchange
from rackspan.gateway.net.frames import FrameMemory
from rackspan.gateway.net.listener import Listener, server_context
from rackspan.gateway.net.open_files import clients_within, raise_limit, too_few
from rackspan.gateway.net.session import Session
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.config_topic import ConfigTopic
from rackspan.gateway.upstream.log_ends import LogEndReader
from rackspan.gateway.upstream.quorum import MetadataQuorum
from rackspan.gateway.upstream.sampler import BrokerMetadata, CommittedMetadata, IsrSampler, IsrSource
from rackspan.model import MIN_INSYNC_REPLICAS
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.configs import DescribeConfigsRequestData, DescribeConfigsResource
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic, MetadataResponseData

log = logging.getLogger(__name__)

REPLICAS_SECONDS: Final = 5.0

_CLIENT_ID: Final = {"client_id": "rackspan-gateway"}
"""In brokers' logs and quotas, unless command.config has another."""

CONNECT_SECONDS: Final = 10.0
"""For the TLS handshake of a client, and for the connection and the TLS handshake of its broker."""

IDLE_SECONDS: Final = 600.0
"""For a client's first bytes, before which there is no connection to a broker. Kafka's connections.max.idle.ms."""

OVERDUE_LOOK_SECONDS: Final = 1.0
GONE_LOOK_SECONDS: Final = 30.0
"""Between two looks at connections: at requests that arrive too slowly, and at clients that are gone."""

HALF_REQUEST_SECONDS: Final = 2.0
"""At the end: how long clients may go on sending a request that they have begun."""

_RESTART: Final = (
    "bootstrap_servers",
    "listen_host",
    "first_port",
    "http",
    "mode",
    "controllers",
    "config_topic",
    "placer",
    "rack_locator",
    "log_format",
)
"""What a reload does not change: other processes and clients depend on it."""


class Gateway:
    """Listeners before every broker of a cluster, on the running event loop. `shared`: other processes listen too."""

    def __init__(self, config: GatewayConfig, *, shared: bool = False) -> None:
        self.config = config
        self._shared = shared
        self._rng = Random()
        properties = {} if config.command_config is None else read_properties(config.command_config)
        settings = kafka_python_settings(properties) if properties else {}
        self._login = login_of(_CLIENT_ID | settings)
        self.client_tls = _client_tls(settings, properties)
        self._server_tls: ssl.SSLContext | None = None
        self._principal_tls: dict[str, ssl.SSLContext] = {}
        self._load_tls(config, properties)
        self.buffers = BufferPool()
        self.frames = FrameMemory(config.request_memory_bytes)
        self.max_request_bytes = config.max_request_bytes
        self.addresses = self
        self.sessions: set[Session] = set()
        self.cluster = UpstreamCluster(config.bootstrap_servers, self._login, self._rng, _locator(config))
        self.cluster.on_nodes = self._nodes_changed
        self.listeners: dict[int, Listener] = {}
        self.requests: Counter[int] = Counter()
        self.connections_accepted = 0
        self.connections_refused: Counter[str] = Counter()
        self.connections_closed_slow = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.policies = Policies(config.policies)
        self.config_topic: ConfigTopic | None = None
        self.admin: AdminHandler | None = None
        self.guard: AcknowledgementGuard | None = None
        self.sampler: IsrSampler | None = None
        self.log_reader: LogEndReader | None = None
        self.quorum: MetadataQuorum | None = None
        self.produce: ProduceHandler | None = None
        self._opening = 0
        self._open_files = raise_limit()
        self.draining = False

    # Start and end.

    async def start(self) -> None:
        """Returns when a listener for every broker is open. Errors: RackspanError."""
        await self.cluster.refresh()
        if not self.cluster.nodes:
            raise UsageError(f"{self.config.bootstrap_servers}: the cluster reports no broker; is it starting?")
        self._warn_of_open_files()
        await self._set_up()
        self._log_warnings()
        self._run(self.cluster.follow())
        self._run(self._close_overdue())
        self._run(self._close_gone())
        for node_id in self.cluster.nodes:
            self._listener(node_id)

    async def _set_up(self) -> None:
        """What is decided about whole requests, before the first client."""
        config = self.config
        guarded = config.mode is not AcknowledgementMode.OFF
        if not guarded and config.placer is None:
            return
        if guarded and config.config_topic is not None:
            self.config_topic = self.open_config_topic(config.config_topic)
            await self.config_topic.start()
            self._run(self.config_topic.follow())
        self.admin = AdminHandler(
            self.cluster,
            self,
            self.policies,
            self.config_topic,
            config.placer,
            config.placer_configs,
            extended_error_codes=config.extended_error_codes,
        )
        if guarded:
            self.guard = AcknowledgementGuard(_guard_settings(config))
            self.produce = ProduceHandler(
                self.guard,
                self.policies,
                self,
                config.config_topic,
                extended_error_codes=config.extended_error_codes,
                deny_weak_acks=config.deny_weak_acks,
            )
            self.sampler = IsrSampler(self.guard, await self._isr_source(), self.produce.complete)
            self.produce.sampler = self.sampler
            self.log_reader = LogEndReader(self.guard, self.cluster, self.produce.complete)
            self.produce.log_reader = self.log_reader
            self.produce.learn_names = self._learn_names
            self._run(self._follow_replicas())
            self._run(self._end_log_periods(self.produce.refusal_log))

    def open_config_topic(self, name: str) -> ConfigTopic:
        """The topic that `policies` follow; nothing is read yet."""
        create = self.config.create_config_topic
        return ConfigTopic(name, self.cluster, self._login, self.policies.replay, create=create)

    def warnings(self) -> list[str]:
        """What an operator should look at in the values of min.insync.racks; clients are served all the same."""
        return values_warnings(self.policies, self.cluster.all_brokers(), self.config_topic)

    async def _isr_source(self) -> IsrSource:
        if self.config.controllers is None:
            return BrokerMetadata(self.cluster, self._learn)
        self.quorum = open_quorum(self.config, self.cluster.cluster_id)
        # All of it, before the first client.
        try:
            await self.quorum.current()
        except (OSError, TimeoutError) as error:
            raise ClusterUnreachable(f"the controllers' log cannot be read: {error or type(error).__name__}") from error
        return CommittedMetadata(self.quorum, self.cluster, self._learn)

    def _learn(self, topic: str, topic_id: UUID | None) -> None:
        """A topic's id by a sample."""
        self.policies.learn_topic(topic, topic_id, asyncio.get_running_loop().time())
        if topic_id is not None and self.produce is not None:
            self.produce.names[topic_id] = topic

    async def _learn_names(self, broker: int, ids: Iterable[UUID]) -> None:
        request = MetadataRequestData(
            topics=[MetadataRequestTopic(topic_id=one, name=None) for one in ids], allow_auto_topic_creation=False
        )
        try:
            connection = await self.cluster.connection(broker)
            metadata: MetadataResponseData = await connection.call(ApiKey.METADATA, request)
        except (OSError, TimeoutError, RackspanError) as error:
            log.warning("topic ids could not be looked up at broker %d: %s", broker, error)
            return
        for topic in metadata.topics:
            if topic.error_code == 0 and topic.name:
                self._learn(topic.name, topic.topic_id)

    async def _follow_replicas(self) -> None:
        """min.insync.replicas of guarded topics decides which of the two errors a refusal is."""
        while True:
            try:
                await self._read_replicas()
            except (OSError, TimeoutError, RackspanError) as error:
                log.warning("min.insync.replicas could not be read: %s", error)
            await asyncio.sleep(REPLICAS_SECONDS)

    async def _read_replicas(self) -> None:
        topics = self.policies.guarded_topics()
        if not topics:
            return
        connection = await self.cluster.any_connection()
        resources = [
            DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=[MIN_INSYNC_REPLICAS])
            for topic in topics
        ]
        response = await connection.call(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequestData(resources=resources))
        self.policies.learn_min_insync_replicas(
            {result.resource_name: int(one.value) for result in response.results for one in result.configs if one.value}
        )

    def _run(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self, seconds: float) -> int:
        """Accept nothing more, let every request end that was received, and close. How many connections were cut off."""
        self.draining = True
        for listener in self.listeners.values():
            listener.close()
        for session in tuple(self.sessions):
            session.drain()
        begun = asyncio.get_running_loop().time()
        while self.sessions and (elapsed := asyncio.get_running_loop().time() - begun) < seconds:
            if elapsed >= HALF_REQUEST_SECONDS:
                for session in tuple(self.sessions):
                    session.cut_off()
            await asyncio.sleep(0.02)
        left = len(self.sessions)
        self.close()
        return left

    def reload(self, config: GatewayConfig) -> None:
        """Take over a config that was read again. Connections live on. Errors: UsageError for what needs a restart."""
        for name in _RESTART:
            if getattr(config, name) != getattr(self.config, name):
                raise UsageError(f"{name.replace('_', '.')} cannot change while the gateway runs; restart it")
        properties = {} if config.command_config is None else read_properties(config.command_config)
        self._load_tls(config, properties)
        self.config = config
        self._warn_of_open_files()
        self.max_request_bytes = config.max_request_bytes
        self.policies.replace_file(config.policies)
        if self.guard is not None:
            self.guard.settings = _guard_settings(config)
        if self.produce is not None:
            self.produce.extended_error_codes = config.extended_error_codes
            self.produce.deny_weak_acks = config.deny_weak_acks
        if self.admin is not None:
            self.admin.placer_configs = config.placer_configs
        self._nodes_changed()
        self._log_warnings()

    def _log_warnings(self) -> None:
        for warning in self.warnings():
            log.warning("%s", warning)

    def close(self) -> None:
        for listener in self.listeners.values():
            listener.close()
        for session in tuple(self.sessions):
            session.close()
        for task in tuple(self._tasks):
            task.cancel()
        if self.sampler is not None:
            self.sampler.close()
        if self.log_reader is not None:
            self.log_reader.close()
        if self.config_topic is not None:
            self.config_topic.close()
        if self.quorum is not None:
            self.quorum.close()
        self.cluster.close()

    @property
    def bootstrap_servers(self) -> str:
        """The advertised addresses, for clients."""
        return ",".join("{}:{}".format(*self.listeners[node].advertised) for node in sorted(self.listeners))

    @property
    def most_connections(self) -> int:
        """Clients at a time: the config's bound, or what open files suffice for if that is less."""
        return min(self.config.max_connections, clients_within(self._open_files, len(self.cluster.nodes)))

    def _warn_of_open_files(self) -> None:
        reason = too_few(self._open_files, self.config.max_connections, len(self.cluster.nodes))
        if reason is not None:
            log.warning("open files: %s", reason)

    # Addresses.

    def advertised(self, node_id: int, host: str, port: int) -> tuple[str, int]:
        self.cluster.learn_from_passing(node_id, host, port)
        try:
            return self._listener(node_id).advertised
        except UsageError as error:
            raise MalformedRequest(f"a response names broker {node_id}: {error}") from error

    def rack(self, node_id: int, registered: str | None) -> str | None:
        return self.cluster.rack(node_id, registered)

    def _listener(self, node_id: int) -> Listener:
        listener = self.listeners.get(node_id)
        if listener is None:
            listener = Listener(node_id, self.config.listener(node_id), self._accept, shared=self._shared)
            self.listeners[node_id] = listener
            log.info(
                "broker %d: listening at %s:%d, advertised as %s:%d",
                node_id,
                listener.config.host,
                listener.port,
                *listener.advertised,
            )
        return listener

    def _nodes_changed(self) -> None:
        if not self.listeners:
            # Still starting: clients may come when everything is read.
            return
        for node_id in self.cluster.nodes:
            try:
                self._listener(node_id)
            except UsageError as error:
                log.error("%s", error)  # The message says everything.
        for node_id in [one for one in self.listeners if not self.cluster.was_registered(one)]:
            # Some response named it; the cluster's metadata never did.
            self.listeners.pop(node_id).close()

    # Sessions.

    async def _accept(self, node_id: int, client: socket.socket) -> None:
        self.connections_accepted += 1
        if self.draining or len(self.sessions) + self._opening >= self.most_connections:
            self.connections_refused["limit"] += 1
            client.close()
            return
        self._opening += 1
        secured = client
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                secured, context = await self._secured(client)
            async with asyncio.timeout(IDLE_SECONDS):
                if not await sends(asyncio.get_running_loop(), secured):
                    secured.close()
                    return
            async with asyncio.timeout(CONNECT_SECONDS):
                node = self.cluster.nodes.get(node_id)
                if node is None:
                    raise ConnectionRefusedError(f"broker {node_id} is not in the cluster")
                upstream = await connected((node.host, node.port), context, node.host if context else None)
        except (OSError, TimeoutError) as error:
            self.connections_refused["handshake" if isinstance(error, ssl.SSLError) else "connect"] += 1
            log.info("a client of broker %d is turned away: %s: %s", node_id, type(error).__name__, error)
            secured.close()
            return
        except BaseException:
            secured.close()
            raise
        finally:
            self._opening -= 1
        Session(self, asyncio.get_running_loop(), secured, upstream, node_id).start()

    async def _secured(self, client: socket.socket) -> tuple[socket.socket, ssl.SSLContext | None]:
        """The client's socket with TLS, if the listeners have it, and the TLS of the connection to the broker."""
        if self._server_tls is None:
            return client, self.client_tls
        secured = self._server_tls.wrap_socket(client, server_side=True, do_handshake_on_connect=False)
        await handshake(asyncio.get_running_loop(), secured)
        if not self._principal_tls:
            return secured, self.client_tls
        name = _common_name(secured.getpeercert() or {})
        if name not in self._principal_tls:
            secured.close()
            raise ssl.SSLError(f"no [principals] entry for the certificate of {name!r}")
        return secured, self._principal_tls[name]

    def _load_tls(self, config: GatewayConfig, properties: Mapping[str, str]) -> None:
        if config.tls is None:
            return
        authorities = None if config.tls.client_authorities is None else str(config.tls.client_authorities)
        self._server_tls = server_context(str(config.tls.certificate), str(config.tls.key), authorities)
        for name, (certificate, key) in config.tls.principals.items():
            context = _client_tls(kafka_python_settings(properties) if properties else {}, properties)
            if context is None:
                raise UsageError(
                    f"[principals.{name!r}]: brokers get a certificate over TLS alone; command.config has no TLS"
                )
            _load_certificate(context, name, certificate, key)
            self._principal_tls[name] = context

    async def _close_overdue(self) -> None:
        """Close connections whose request arrives too slowly: its memory is bounded, and its time is here."""
        while True:
            await asyncio.sleep(OVERDUE_LOOK_SECONDS)
            for session in [session for session in self.sessions if session.is_overdue]:
                self.connections_closed_slow += 1
                log.warning("closing the connection of %s: its request arrives too slowly", session.peer)
                session.close()

    async def _end_log_periods(self, refusals: RefusalLog) -> None:
        while True:
            await asyncio.sleep(PERIOD_SECONDS)
            refusals.end_period()

    async def _close_gone(self) -> None:
        """Close connections of clients that are gone while their request waits for a broker that does not respond."""
        before: set[Session] = set()
        while True:
            await asyncio.sleep(GONE_LOOK_SECONDS)
            gone = {session for session in self.sessions if session.client.has_ended_unseen}
            for session in gone & before:
                log.info("closing the connection of %s: it is gone, and its request has no response", session.peer)
                session.close()
            before = gone

    # Whole requests.

    def count_frame(self, api_key: int) -> None:
        self.requests[api_key] += 1

    def reads_whole(self, api_key: int, _version: int) -> bool:
        return api_key == ApiKey.PRODUCE or (self.admin is not None and self.admin.reads_whole(api_key))

    def take(self, session: Session, exchange: Exchange, request: memoryview) -> None:
        if self.admin is not None and exchange.api_key != ApiKey.PRODUCE:
            self.admin.take(session, exchange, request)
        elif self.produce is not None:
            self.produce.take(session, exchange, request)
        else:
            session.forward(exchange, responds=acks_of(exchange.version, request) != 0)


def _guard_settings(config: GatewayConfig) -> GuardSettings:
    return GuardSettings(
        mode=config.mode,
        max_staleness=config.max_staleness_ms / 1000,
        verify_timeout=config.verify_timeout_ms / 1000,
    )


def open_quorum(config: GatewayConfig, cluster_id: str | None) -> MetadataQuorum:
    """Errors: UsageError for a config without controllers, or with one that cannot be read."""
    if config.controllers is None:
        raise UsageError("controllers.bootstrap.servers is missing; write the controllers' own addresses there")
    path = config.controllers_command_config
    settings = {} if path is None else kafka_python_settings(read_properties(path))
    return MetadataQuorum(
        addresses("controllers.bootstrap.servers", config.controllers), login_of(_CLIENT_ID | settings), cluster_id
    )


def _client_tls(settings: Mapping[str, Any], properties: Mapping[str, str]) -> ssl.SSLContext | None:
    """TLS of clients' connections to brokers: command.config without its certificate.

    A broker would take every client for the gateway, with the gateway's rights.
    """
    if "ssl_context" not in settings:
        return None
    without = {key: value for key, value in properties.items() if not key.startswith(("ssl.keystore", "ssl.key"))}
    context: ssl.SSLContext = kafka_python_settings(without)["ssl_context"]
    return context


def _load_certificate(context: ssl.SSLContext, name: str, certificate: Path, key: Path) -> None:
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:
        raise UsageError(f"[principals.{name!r}]: {certificate} and {key} cannot be used: {error}") from error


def _common_name(certificate: Mapping[str, Any]) -> str | None:
    for part in certificate.get("subject", ()):
        for key, value in part:
            if key == "commonName":
                return str(value)
    return None


def _locator(config: GatewayConfig) -> Any:
    if config.rack_locator is None:
        return None
    from rackspan.sources.rack_locator import parse_properties
    from rackspan.sources.rack_locators.registry import make

    return make(config.rack_locator, parse_properties(config.rack_locator_properties))
