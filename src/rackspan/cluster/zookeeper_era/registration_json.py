"""A broker's registration under /brokers/ids in ZooKeeper: JSON versions 1 to 5 (KIP-36, "Changes to Broker property").

    1  host, port, jmx_port, timestamp          of the first listener
    2  adds endpoints: ["PLAINTEXT://host1:9092"]
    3  adds rack, and leaves the key out for a broker without one
    4  adds listener_security_protocol_map: {"CLIENT": "SSL"}; endpoints begin with these names
    5  adds features: {"name": {"min_version": 1, "max_version": 2}}

Source: Kafka's ZkData.BrokerIdZNode up to 3.9. An embedded broker whose `inter.broker.protocol.version` was changed passes
its registration through it (`registered_rack`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from rackspan.cluster.zookeeper_era.protocol_version import registration_version
from rackspan.errors import UnreadableRegistration
from rackspan.model.ids import RackId

_VERSIONS: Final = range(1, 6)
_ENDPOINTS_FROM: Final = 2
_RACK_FROM: Final = 3
_LISTENERS_FROM: Final = 4
_FEATURES_FROM: Final = 5


class RegistrationReader(Enum):
    """Kafka releases that read a registration differently; the value is the newest JSON version each accepts, None for any."""

    V0_9_0_0 = 2
    """Refuses newer versions: the bug for which clients must be upgraded first."""
    V0_9_0_1 = None
    """The release with the fixed reader: it accepts any version and ignores unknown fields, the rack among them."""
    V0_10_0 = 99
    """Reads the rack."""


@dataclass(frozen=True, slots=True)
class Registration:
    """One broker. `timestamp` in ms as text, as the JSON has it; `jmx_port` −1 for none."""

    host: str
    port: int
    endpoints: tuple[str, ...] = ()
    rack: RackId | None = None
    jmx_port: int = -1
    timestamp: str = "0"
    listeners: Mapping[str, str] = field(default_factory=dict)
    features: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def write_registration(registration: Registration, version: int) -> str:
    """The JSON of that version, without the fields that came later. Errors: ValueError for an unknown version."""
    if version not in _VERSIONS:
        raise ValueError(f"registration JSON version {version}: there are 1 to 5")
    fields: dict[str, Any] = {
        "version": version,
        "host": registration.host,
        "port": registration.port,
        "jmx_port": registration.jmx_port,
        "timestamp": registration.timestamp,
    }
    if version >= _ENDPOINTS_FROM:
        fields["endpoints"] = list(registration.endpoints)
    if version >= _RACK_FROM and registration.rack is not None:
        fields["rack"] = registration.rack
    if version >= _LISTENERS_FROM:
        fields["listener_security_protocol_map"] = dict(registration.listeners)
    if version >= _FEATURES_FROM:
        fields["features"] = {
            name: {"min_version": least, "max_version": most} for name, (least, most) in registration.features.items()
        }
    return json.dumps(fields, separators=(",", ":"))


def read_registration(text: str, reader: RegistrationReader = RegistrationReader.V0_10_0) -> Registration:
    """The registration as this release of Kafka reads it. Errors: UnreadableRegistration."""
    fields = _fields(text)
    version = fields["version"]
    if version < _VERSIONS[0] or (
        reader is RegistrationReader.V0_9_0_0 and version > RegistrationReader.V0_9_0_0.value
    ):
        raise UnreadableRegistration(
            f"broker registration of version {version}: a reader of this kind knows 1 and 2; upgrade it to 0.9.0.1 first"
        )
    features = fields.get("features", {})
    try:
        return Registration(
            host=fields["host"],
            port=fields["port"],
            endpoints=tuple(fields.get("endpoints", ())),
            rack=RackId(fields["rack"]) if reader is RegistrationReader.V0_10_0 and "rack" in fields else None,
            jmx_port=fields.get("jmx_port", -1),
            timestamp=fields.get("timestamp", "0"),
            listeners=fields.get("listener_security_protocol_map", {}),
            features={name: (feature["min_version"], feature["max_version"]) for name, feature in features.items()},
        )
    except (KeyError, TypeError) as error:
        raise UnreadableRegistration(f"broker registration: no {error} in version {version}; write it again") from error


def _fields(text: str) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise UnreadableRegistration(f"broker registration: not JSON: {error}; write it again") from error
    if not isinstance(fields, dict) or type(fields.get("version")) is not int:
        raise UnreadableRegistration("broker registration: not an object with a version; write it again")
    return fields


def registered_rack(rack: RackId | None, host: str, port: int, protocol_version: str) -> RackId | None:
    """The rack that is left after a broker of this protocol version registered: JSON version 2 has no rack (KIP-36)."""
    registration = Registration(host, port, (f"PLAINTEXT://{host}:{port}",), rack)
    return read_registration(write_registration(registration, registration_version(protocol_version))).rack
