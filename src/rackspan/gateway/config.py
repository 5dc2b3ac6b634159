"""The gateway's config file, TOML with dotted keys like Kafka's: one table of keys, checked whole before anything starts."""

import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from msgspec import Meta, Struct, field

from rackspan.client.config import read_properties
from rackspan.client.identity import BROKER_IDENTITY, IdentityMode
from rackspan.documents import convert_toml, dotted_keys
from rackspan.errors import UsageError
from rackspan.gateway.core.acknowledgement.guard import AcknowledgementMode
from rackspan.gateway.core.gateways.registrations import NAME_PATTERN
from rackspan.gateway.core.policies import FilePolicies, TopicPolicy
from rackspan.gateway.core.reader_racks import ReaderRacks
from rackspan.gateway.core.topic_configs import KAFKAS_OWN
from rackspan.model import GATEWAY_CONFIG_TOPIC, INT32_MAX, MIN_INSYNC_RACKS, RackId
from rackspan.model.client_networks import ClientNetworks
from rackspan.model.topic import TOPIC_NAME_RULE

PORT_MAX: Final = 65_535
SEE: Final = "see docs/how-to/gateway.md"

Text: TypeAlias = Annotated[str, Meta(min_length=1)]
Port: TypeAlias = Annotated[int, Meta(ge=0, le=PORT_MAX)]
PositiveInt: TypeAlias = Annotated[int, Meta(ge=1, le=INT32_MAX)]


def _dotted(name: str) -> str:
    """The key of a field: Kafka's keys have dots."""
    return name.replace("_", ".")


@dataclass(frozen=True, slots=True)
class ListenerConfig:
    """The listener of one broker. `port` 0 is any free one."""

    host: str
    port: int
    advertised_host: str
    advertised_port: int | None = None
    """None: the port itself."""


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """TLS of the listeners. `principals` maps a client certificate's common name to the certificate shown to brokers for it."""

    certificate: Path
    key: Path
    client_authorities: Path | None = None
    principals: Mapping[str, tuple[Path, Path]] = dataclass_field(default_factory=dict)


class TopicTable(Struct, frozen=True, forbid_unknown_fields=True, rename=_dotted):
    SHOWN: ClassVar[str] = '[topics."{key}"]'

    min_insync_racks: PositiveInt | None = None
    fail_open: bool = False


class BrokerListenerTable(Struct, frozen=True, forbid_unknown_fields=True, rename=_dotted):
    """The listener of one broker. The host is `listen.host` by default, the advertised one the host."""

    SHOWN: ClassVar[str] = "[brokers.{key}]"

    host: Text | None = None
    port: Port = 0
    advertised_host: Text | None = None
    advertised_port: Annotated[int, Meta(ge=1, le=PORT_MAX)] | None = None


class PrincipalTable(Struct, frozen=True, forbid_unknown_fields=True):
    SHOWN: ClassVar[str] = '[principals."{key}"]'

    certificate: Path
    key: Path


class GatewayConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=_dotted):
    """The whole file: the keys are the fields' names with dots, unless `name` gives another. Times in milliseconds, sizes in bytes."""

    bootstrap_servers: Text
    command_config: Path | None = None
    controllers: Text | None = field(default=None, name="controllers.bootstrap.servers")
    controllers_command_config: Path | None = None
    broker_identity: IdentityMode = IdentityMode.PROVED
    listen_host: Text = "127.0.0.1"
    first_port: Port = field(default=19092, name="listen.first.port")
    advertised_host: Text | None = field(default=None, name="listen.advertised.host")
    http: Text | None = field(default=None, name="listen.http")
    tls_certificate: Path | None = field(default=None, name="listen.tls.certificate")
    tls_key: Path | None = field(default=None, name="listen.tls.key")
    tls_client_authorities: Path | None = field(default=None, name="listen.tls.client.authorities")
    max_connections: PositiveInt = field(default=5_000, name="listen.max.connections")
    max_connections_per_address: PositiveInt | None = field(default=None, name="listen.address.max.connections")
    max_new_connections_per_address: PositiveInt = field(default=500, name="listen.address.max.new.connections")
    max_request_bytes: Annotated[int, Meta(ge=1024, le=INT32_MAX)] = field(
        default=100 * 1024 * 1024, name="listen.max.request.bytes"
    )
    request_memory_bytes: Annotated[int, Meta(ge=1024 * 1024, le=INT32_MAX)] = field(
        default=256 * 1024 * 1024, name="listen.request.memory.bytes"
    )
    log_format: Literal["text", "json"] = "text"
    shutdown_seconds: Annotated[int, Meta(ge=0, le=INT32_MAX)] = field(default=30, name="shutdown.timeout.seconds")
    mode: AcknowledgementMode = field(default=AcknowledgementMode.VERIFIED, name="acknowledgements.mode")
    config_topic: Text | None = field(default=GATEWAY_CONFIG_TOPIC, name="acknowledgements.config.topic")
    create_config_topic: bool = field(default=True, name="acknowledgements.config.topic.create")
    min_insync_racks: PositiveInt = field(default=1, name=f"acknowledgements.{MIN_INSYNC_RACKS}")
    gateway_id: Text | None = None
    override: PositiveInt | None = field(default=None, name=f"acknowledgements.override.{MIN_INSYNC_RACKS}")
    fail_open: bool = field(default=False, name="acknowledgements.fail.open")
    max_staleness_ms: Annotated[int, Meta(ge=50, le=INT32_MAX)] = field(
        default=1_000, name="acknowledgements.max.staleness.ms"
    )
    hold_memory_bytes: Annotated[int, Meta(ge=64 * 1024, le=INT32_MAX)] = field(
        default=32 * 1024 * 1024, name="acknowledgements.hold.memory.bytes"
    )
    deny_weak_acks: bool = field(default=False, name="acknowledgements.deny.weak.acks")
    extended_error_codes: bool = field(default=False, name="acknowledgements.extended.error.codes")
    placer: Text | None = field(default=None, name="placement.replica.placer.class.name")
    placer_configs: dict[str, str] = field(default_factory=dict, name="placement.configs")
    rack_locator: Text | None = field(default=None, name="racks.rack.locator.class")
    rack_locator_properties: str = field(default="", name="racks.rack.locator.properties")
    readers_rack: Text | None = None
    readers_replace_client_rack: bool = False
    readers_networks: dict[str, Text] = field(default_factory=dict)
    readers_clients: dict[str, Text] = field(default_factory=dict)
    counters_topics_max: PositiveInt = 100
    counters_clients_max: PositiveInt = 100
    metrics_partitions: bool = False
    topics: dict[str, TopicTable] = field(default_factory=dict)
    brokers: dict[str, BrokerListenerTable] = field(default_factory=dict)
    principals: dict[str, PrincipalTable] = field(default_factory=dict)

    @classmethod
    def key_of(cls, name: str) -> str:
        """The key of a field in the file."""
        return dict(zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True))[name]

    @property
    def secret_files(self) -> list[Path]:
        """The files with passwords or private keys."""
        keys = [shown.key for shown in self.principals.values()]
        named = (self.command_config, self.controllers_command_config, self.tls_key, *keys)
        return list(dict.fromkeys(file for file in named if file is not None))

    def exposed_secrets(self) -> Iterator[str]:
        """A warning for each of these files, and the keys that a command config names, that every user of the machine may read or write."""
        configs = [file for file in (self.command_config, self.controllers_command_config) if file is not None]
        stores = [store for file in configs if (store := read_properties(file).get("ssl.keystore.location"))]
        for file in dict.fromkeys([*self.secret_files, *map(Path, stores)]):
            mode = file.stat().st_mode
            if mode & stat.S_IRWXO:
                yield f"{file} has mode {stat.S_IMODE(mode):o}, and every user of this machine may use the secrets in it; chmod 600 {file}"

    @property
    def reads_racks(self) -> bool:
        """Whether anything depends on the brokers' racks."""
        return self.mode is not AcknowledgementMode.OFF or self.placer is not None

    @property
    def identity(self) -> IdentityMode:
        """What shows which broker a connection ends at; without a guard no log is read."""
        return IdentityMode.ADDRESS if self.mode is AcknowledgementMode.OFF else self.broker_identity

    @property
    def policies(self) -> FilePolicies:
        topics = {name: TopicPolicy(topic.min_insync_racks, topic.fail_open) for name, topic in self.topics.items()}
        return FilePolicies(self.min_insync_racks, topics, self.fail_open, self.override)

    @property
    def readers(self) -> ReaderRacks:
        """Errors: UsageError for a range or pattern that is none."""
        for pattern in self.readers_clients:
            try:
                re.compile(pattern)
            except re.error as error:
                raise UsageError(f"[readers.clients] {pattern!r}: not a regular expression: {error}") from None
        return ReaderRacks(
            None if self.readers_rack is None else RackId(self.readers_rack),
            {pattern: RackId(rack) for pattern, rack in self.readers_clients.items()},
            ClientNetworks(self.readers_networks) if self.readers_networks else None,
            self.readers_replace_client_rack,
        )

    @property
    def tls(self) -> TlsConfig | None:
        if self.tls_certificate is None or self.tls_key is None:
            return None
        principals = {name: (shown.certificate, shown.key) for name, shown in self.principals.items()}
        return TlsConfig(self.tls_certificate, self.tls_key, self.tls_client_authorities, principals)

    def listener(self, node_id: int) -> ListenerConfig:
        """Where the listener of a broker is. Errors: UsageError for a port that there is not."""
        table = self.brokers.get(str(node_id))
        if table is not None:
            host = table.host or self.listen_host
            return ListenerConfig(host, table.port, table.advertised_host or host, table.advertised_port)
        port = self.first_port + node_id if self.first_port else 0
        if port > PORT_MAX:
            raise UsageError(
                f"listen.first.port {self.first_port} leaves no port for broker {node_id}; write [brokers.{node_id}] with a port"
            )
        return ListenerConfig(self.listen_host, port, self.advertised_host or self.listen_host)


def read_config(path: Path) -> GatewayConfig:
    """Errors: UsageError, naming file and key."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}; name another file with --config") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not TOML: {error}; see docs/how-to/gateway.md") from None
    return parse_config(document, str(path), path.parent)


def parse_config(document: Mapping[str, Any], name: str = "config", folder: Path = Path()) -> GatewayConfig:
    """The config of a parsed document; relative files are beside it. Errors: UsageError."""
    tables = {key: _dotted_table(value) for key, value in document.items() if key in _TABLES}
    keys = dict(dotted_keys({key: value for key, value in document.items() if key not in _TABLES}))
    given = document.get("readers")
    readers = given if isinstance(given, dict) else {}
    for table in _READER_TABLES:
        if table in readers:
            # Names of clients and networks have dots of their own.
            keys = {key: value for key, value in keys.items() if not key.startswith(f"readers.{table}.")}
            keys[f"readers.{table}"] = readers[table]
    placer_keys = [key for key in keys if key.startswith(_PLACER_PREFIX)]
    configs = {key.removeprefix(_PLACER_PREFIX): str(keys.pop(key)) for key in placer_keys}
    if _MODE not in keys and _CONTROLLERS in keys:
        # What the controllers have committed needs no settling, and cannot be late.
        keys[_MODE] = AcknowledgementMode.STRICT.value
    if keys.get(_CONFIG_TOPIC) == "":
        keys[_CONFIG_TOPIC] = None
    _find_files(name, keys, _FILES, folder)
    if isinstance(principals := tables.get("principals"), dict):
        for common, table in principals.items():
            _find_files(f'{name}: [principals."{common}"]', table, PrincipalTable.__struct_fields__, folder)
    config = convert_toml({**keys, **tables, "placement.configs": configs}, GatewayConfig, name, SEE)
    _check(name, config)
    return config


_TABLES: Final = ("topics", "brokers", "principals")
_READER_TABLES: Final = ("networks", "clients")
_PLACER_PREFIX: Final = "placement.configs."
_CONFIG_TOPIC: Final = "acknowledgements.config.topic"
_CONTROLLERS: Final = "controllers.bootstrap.servers"
_MODE: Final = "acknowledgements.mode"
_FILES: Final = (
    *("command.config", "controllers.command.config"),
    *("listen.tls.certificate", "listen.tls.key", "listen.tls.client.authorities"),
)


def _dotted_table(value: object) -> object:
    """[brokers.1], [brokers.2] with the dotted keys of each."""
    if not isinstance(value, dict):
        return value
    return {name: dict(dotted_keys(table)) if isinstance(table, dict) else table for name, table in value.items()}


def _find_files(place: str, table: Any, keys: Iterable[str], folder: Path) -> None:
    """Replace the names of files by their paths. Errors: UsageError for one that is not there."""
    for key in keys if isinstance(table, dict) else ():
        if isinstance(named := table.get(key), str):
            table[key] = folder / named
            if not table[key].is_file():
                raise UsageError(
                    f"{place} {key}: {table[key]} is not a file; relative paths begin at the config file's folder"
                )


def _check(name: str, config: GatewayConfig) -> None:
    for broker in config.brokers:
        if not broker.isdecimal() or broker != str(int(broker)):
            raise UsageError(f"{name}: [brokers.{broker}]: {broker!r} is not a broker id; write a whole number")
    guarded = [topic for topic, required in config.topics.items() if required.min_insync_racks is not None]
    if config.mode is AcknowledgementMode.OFF and (
        guarded or config.min_insync_racks > 1 or config.override is not None
    ):
        raise UsageError(f"{name}: {MIN_INSYNC_RACKS} is set, and acknowledgements.mode is off; remove one of them")
    if config.mode is AcknowledgementMode.OFF and config.deny_weak_acks:
        raise UsageError(
            f"{name}: acknowledgements.deny.weak.acks is true, and acknowledgements.mode is off: nothing is denied; remove one of them"
        )
    if config.mode is AcknowledgementMode.OFF and config.broker_identity is IdentityMode.ADDRESS:
        raise UsageError(
            f"{name}: {BROKER_IDENTITY} is address, and acknowledgements.mode is off: no broker's log is read; remove one of them"
        )
    for topic in guarded:
        if topic in KAFKAS_OWN or topic == config.config_topic or not TOPIC_NAME_RULE.fullmatch(topic):
            raise UsageError(
                f"{name}: [topics.{topic!r}]: clients write no topic of this name, so that no value is enforced; remove it"
            )
    if config.gateway_id is not None and not re.match(NAME_PATTERN, config.gateway_id):
        raise UsageError(
            f"{name}: gateway.id is {config.gateway_id!r}; write up to 200 letters, digits and . _ : - in it"
        )
    if config.gateway_id is not None and config.config_topic is None:
        raise UsageError(
            f"{name}: gateway.id names this gateway in the config topic, and acknowledgements.config.topic is empty; remove one of them"
        )
    strict = config.mode is AcknowledgementMode.STRICT
    if strict and config.controllers is None:
        raise UsageError(
            f"{name}: acknowledgements.mode strict reads the controllers' log; write their listeners' addresses as "
            "controllers.bootstrap.servers"
        )
    if not strict and (config.controllers is not None or config.controllers_command_config is not None):
        raise UsageError(
            f"{name}: controllers.* is for acknowledgements.mode strict alone, and the mode is {config.mode.value}; remove it"
        )
    _check_tls(name, config)
    try:
        _ = config.readers
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None


def _check_tls(name: str, config: GatewayConfig) -> None:
    authorities = config.tls_client_authorities is not None
    if (config.tls_certificate is None or config.tls_key is None) and (
        authorities or config.principals or config.tls_certificate != config.tls_key
    ):
        raise UsageError(f"{name}: TLS takes listen.tls.certificate and listen.tls.key; add the one that is missing")
    if config.principals and not authorities:
        raise UsageError(
            f"{name}: [principals] are of client certificates; add listen.tls.client.authorities, which verifies them"
        )
