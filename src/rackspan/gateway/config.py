"""The gateway's config file, TOML with dotted keys like Kafka's: one table of keys, checked whole before anything starts."""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rackspan.errors import UsageError
from rackspan.gateway.core.acknowledgement.rules import AcknowledgementMode
from rackspan.gateway.core.policies import FilePolicies, TopicPolicy
from rackspan.model import INT32_MAX, MIN_INSYNC_RACKS
from rackspan.toml_keys import dotted_keys

DEFAULT_CONFIG_TOPIC: Final = "__rackspan_configs"
LOG_FORMATS: Final = ("text", "json")
PORT_MAX: Final = 65_535


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
    principals: Mapping[str, tuple[Path, Path]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """The whole file. Times in milliseconds, sizes in bytes."""

    bootstrap_servers: str
    command_config: Path | None = None
    controllers: str | None = None
    controllers_command_config: Path | None = None
    listen_host: str = "127.0.0.1"
    first_port: int = 19092
    advertised_host: str | None = None
    brokers: Mapping[int, ListenerConfig] = field(default_factory=dict)
    http: str | None = None
    tls: TlsConfig | None = None
    mode: AcknowledgementMode = AcknowledgementMode.VERIFIED
    config_topic: str | None = DEFAULT_CONFIG_TOPIC
    create_config_topic: bool = True
    min_insync_racks: int = 1
    topics: Mapping[str, TopicPolicy] = field(default_factory=dict)
    fail_open: bool = False
    override: int | None = None
    max_staleness_ms: int = 1_000
    verify_timeout_ms: int = 10_000
    deny_weak_acks: bool = False
    extended_error_codes: bool = False
    placer: str | None = None
    placer_configs: Mapping[str, str] = field(default_factory=dict)
    rack_locator: str | None = None
    rack_locator_properties: str = ""
    max_request_bytes: int = 100 * 1024 * 1024
    max_connections: int = 5_000
    request_memory_bytes: int = 256 * 1024 * 1024
    shutdown_seconds: int = 30
    log_format: str = "text"

    @property
    def policies(self) -> FilePolicies:
        return FilePolicies(self.min_insync_racks, self.topics, self.fail_open, self.override)

    def listener(self, node_id: int) -> ListenerConfig:
        """Where the listener of a broker is. Errors: UsageError for a port that there is not."""
        if node_id in self.brokers:
            return self.brokers[node_id]
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
        raise UsageError(f"{path}: cannot be read: {error.strerror}; give --config FILE") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not TOML: {error}; see docs/how-to/gateway.md") from None
    return parse_config(document, str(path), path.parent)


def parse_config(document: Mapping[str, Any], name: str = "config", folder: Path = Path()) -> GatewayConfig:
    """The config of a parsed document; relative files are beside it. Errors: UsageError."""
    rest = dict(document)
    topics = {topic: _topic(name, topic, table) for topic, table in _tables(name, rest, "topics")}
    listen_host = str(rest.get("listen", {}).get("host", "127.0.0.1")) if isinstance(rest.get("listen"), dict) else ""
    brokers = {
        _node_id(name, broker): _listener(name, broker, table, listen_host)
        for broker, table in _tables(name, rest, "brokers")
    }
    principals = {
        common: _principal(name, common, table, folder) for common, table in _tables(name, rest, "principals")
    }
    values: dict[str, Any] = {}
    placer_configs: dict[str, str] = {}
    for key, value in dotted_keys(rest):
        if key.startswith(_PLACER_PREFIX):
            placer_configs[key.removeprefix(_PLACER_PREFIX)] = str(value)
            continue
        if key not in _KEYS:
            raise UsageError(f"{name}: {key} is not a setting of the gateway; see docs/how-to/gateway.md")
        field_name, parse = _KEYS[key]
        values[field_name] = parse(f"{name}: {key}", value, folder)
    if "bootstrap_servers" not in values:
        raise UsageError(f"{name}: bootstrap.servers is missing; write the brokers' own addresses there")
    tls = _tls(name, values, principals)
    config = GatewayConfig(**values, tls=tls, topics=topics, brokers=brokers, placer_configs=placer_configs)
    _check(name, config)
    return config


_PLACER_PREFIX: Final = "placement.configs."


def _check(name: str, config: GatewayConfig) -> None:
    guarded = [topic for topic, one in config.topics.items() if one.min_insync_racks is not None]
    if config.mode is AcknowledgementMode.OFF and (
        guarded or config.min_insync_racks > 1 or config.override is not None
    ):
        raise UsageError(f"{name}: {MIN_INSYNC_RACKS} is set, and acknowledgements.mode is off; remove one of them")
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


def _tls(name: str, values: dict[str, Any], principals: Mapping[str, tuple[Path, Path]]) -> TlsConfig | None:
    certificate, key = values.pop("tls_certificate", None), values.pop("tls_key", None)
    authorities = values.pop("tls_client_authorities", None)
    if certificate is None and key is None and authorities is None and not principals:
        return None
    if certificate is None or key is None:
        raise UsageError(f"{name}: TLS takes listen.tls.certificate and listen.tls.key; add the one that is missing")
    if principals and authorities is None:
        raise UsageError(
            f"{name}: [principals] are of client certificates; add listen.tls.client.authorities, which verifies them"
        )
    return TlsConfig(certificate, key, authorities, principals)


def _tables(name: str, document: dict[str, Any], key: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    tables = document.pop(key, {})
    if not isinstance(tables, dict):
        raise UsageError(f"{name}: {key} is a table; write [{key}.NAME] above its lines")
    for entry, table in tables.items():
        if not isinstance(table, dict):
            raise UsageError(f"{name}: {key}.{entry} is a table; write [{key}.{entry}] above its lines")
        yield entry, dict(dotted_keys(table))


def _topic(name: str, topic: str, table: Mapping[str, Any]) -> TopicPolicy:
    place = f'{name}: [topics."{topic}"]'
    _refuse_unknown(place, table, {MIN_INSYNC_RACKS, "fail.open"})
    racks = table.get(MIN_INSYNC_RACKS)
    return TopicPolicy(
        None if racks is None else _number(1)(f"{place} {MIN_INSYNC_RACKS}", racks, Path()),
        _boolean(f"{place} fail.open", table.get("fail.open", False), Path()),
    )


def _node_id(name: str, broker: str) -> int:
    if not broker.isdecimal() or int(broker) > INT32_MAX:
        raise UsageError(f"{name}: [brokers.{broker}]: {broker!r} is not a broker id; write a whole number")
    return int(broker)


def _listener(name: str, broker: str, table: Mapping[str, Any], listen_host: str) -> ListenerConfig:
    place = f"{name}: [brokers.{broker}]"
    _refuse_unknown(place, table, {"host", "port", "advertised.host", "advertised.port"})
    host = _text(f"{place} host", table.get("host", listen_host or "127.0.0.1"), Path())
    advertised = table.get("advertised.port")
    return ListenerConfig(
        host,
        _number(0, PORT_MAX)(f"{place} port", table.get("port", 0), Path()),
        _text(f"{place} advertised.host", table.get("advertised.host", host), Path()),
        None if advertised is None else _number(1, PORT_MAX)(f"{place} advertised.port", advertised, Path()),
    )


def _principal(name: str, common: str, table: Mapping[str, Any], folder: Path) -> tuple[Path, Path]:
    place = f'{name}: [principals."{common}"]'
    _refuse_unknown(place, table, {"certificate", "key"})
    if set(table) != {"certificate", "key"}:
        raise UsageError(f"{place}: certificate and key are both needed; add the one that is missing")
    return _file(f"{place} certificate", table["certificate"], folder), _file(f"{place} key", table["key"], folder)


def _refuse_unknown(place: str, table: Mapping[str, Any], known: set[str]) -> None:
    for key in table:
        if key not in known:
            raise UsageError(f"{place}: {key} is not a setting; there are {', '.join(sorted(known))}")


Parse = Callable[[str, Any, Path], Any]


def _text(place: str, value: Any, _folder: Path) -> str:
    if not isinstance(value, str) or not value:
        raise UsageError(f"{place} is {value!r}, expected text in quotes")
    return value


def _optional_text(place: str, value: Any, folder: Path) -> str | None:
    return None if value == "" else _text(place, value, folder)


def _file(place: str, value: Any, folder: Path) -> Path:
    path = folder / _text(place, value, folder)
    if not path.is_file():
        raise UsageError(f"{place}: {path} is not a file; relative paths begin at the config file's folder")
    return path


def _boolean(place: str, value: Any, _folder: Path) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{place} is {value!r}, expected true or false")
    return value


def _number(least: int, most: int = INT32_MAX) -> Callable[[str, Any, Path], int]:
    def parse(place: str, value: Any, _folder: Path) -> int:
        if type(value) is not int or not least <= value <= most:
            raise UsageError(f"{place} is {value!r}, expected a whole number of {least} to {most}")
        return value

    return parse


def _mode(place: str, value: Any, _folder: Path) -> AcknowledgementMode:
    modes = {mode.value: mode for mode in AcknowledgementMode}
    if value not in modes:
        raise UsageError(f"{place} is {value!r}, expected one of {', '.join(modes)}")
    return modes[value]


def _log_format(place: str, value: Any, _folder: Path) -> str:
    if value not in LOG_FORMATS:
        raise UsageError(f"{place} is {value!r}, expected one of {', '.join(LOG_FORMATS)}")
    return str(value)


_KEYS: Final[Mapping[str, tuple[str, Parse]]] = {
    "bootstrap.servers": ("bootstrap_servers", _text),
    "command.config": ("command_config", _file),
    "controllers.bootstrap.servers": ("controllers", _text),
    "controllers.command.config": ("controllers_command_config", _file),
    "listen.host": ("listen_host", _text),
    "listen.first.port": ("first_port", _number(0, PORT_MAX)),
    "listen.advertised.host": ("advertised_host", _text),
    "listen.http": ("http", _text),
    "listen.tls.certificate": ("tls_certificate", _file),
    "listen.tls.key": ("tls_key", _file),
    "listen.tls.client.authorities": ("tls_client_authorities", _file),
    "listen.max.connections": ("max_connections", _number(1)),
    "listen.max.request.bytes": ("max_request_bytes", _number(1024)),
    "listen.request.memory.bytes": ("request_memory_bytes", _number(1024 * 1024)),
    "log.format": ("log_format", _log_format),
    "shutdown.timeout.seconds": ("shutdown_seconds", _number(0)),
    "acknowledgements.mode": ("mode", _mode),
    "acknowledgements.config.topic": ("config_topic", _optional_text),
    f"acknowledgements.{MIN_INSYNC_RACKS}": ("min_insync_racks", _number(1)),
    f"acknowledgements.override.{MIN_INSYNC_RACKS}": ("override", _number(1)),
    "acknowledgements.config.topic.create": ("create_config_topic", _boolean),
    "acknowledgements.fail.open": ("fail_open", _boolean),
    "acknowledgements.max.staleness.ms": ("max_staleness_ms", _number(50)),
    "acknowledgements.verify.timeout.ms": ("verify_timeout_ms", _number(100)),
    "acknowledgements.deny.weak.acks": ("deny_weak_acks", _boolean),
    "acknowledgements.extended.error.codes": ("extended_error_codes", _boolean),
    "placement.replica.placer.class.name": ("placer", _text),
    "racks.rack.locator.class": ("rack_locator", _text),
    "racks.rack.locator.properties": ("rack_locator_properties", _text),
}
"""Each key with its field in GatewayConfig and the function that reads its value."""
