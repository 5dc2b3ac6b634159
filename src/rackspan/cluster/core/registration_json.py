"""What a broker wrote of itself under /brokers/ids in ZooKeeper: JSON versions 1 to 5 (KIP-36, Changes to Broker property).

    1  host, port, jmx_port, timestamp          of the first listener
    2  and endpoints: ["PLAINTEXT://host1:9092"]
    3  and rack, unless the broker has none: then there is no such key
    4  and listener_security_protocol_map: {"CLIENT": "SSL"}, whose names the endpoints then bear
    5  and features: {"name": {"min_version": 1, "max_version": 2}}

Source: Kafka's ZkData.BrokerIdZNode up to 3.9. Nobody writes it any more; an embedded broker with an
`inter.broker.protocol.version` of that era passes its registration through it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from rackspan.errors import UnreadableRegistration
from rackspan.model.ids import RackId

VERSIONS: Final = range(1, 6)
ENDPOINTS_FROM: Final = 2
RACK_FROM: Final = 3
LISTENERS_FROM: Final = 4
FEATURES_FROM: Final = 5


class Reader(Enum):
    """The kinds of software that read a registration; the value is the newest version each takes, None for any."""

    V0_9_0_0 = 2
    """It refuses what it does not know: the bug for which clients must be upgraded first."""
    V0_9_0_1 = None
    """The minor release with the mended reader: it takes any version and skips what it does not know, the rack too."""
    V0_10_0 = 99
    """It knows the rack."""


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


def write(registration: Registration, version: int) -> str:
    """The JSON of that version; what the version does not have is left out. Errors: ValueError."""
    if version not in VERSIONS:
        raise ValueError(f"registration JSON version {version}: there are 1 to 5")
    fields: dict[str, Any] = {
        "version": version,
        "host": registration.host,
        "port": registration.port,
        "jmx_port": registration.jmx_port,
        "timestamp": registration.timestamp,
    }
    if version >= ENDPOINTS_FROM:
        fields["endpoints"] = list(registration.endpoints)
    if version >= RACK_FROM and registration.rack is not None:
        fields["rack"] = registration.rack
    if version >= LISTENERS_FROM:
        fields["listener_security_protocol_map"] = dict(registration.listeners)
    if version >= FEATURES_FROM:
        fields["features"] = {
            name: {"min_version": least, "max_version": most} for name, (least, most) in registration.features.items()
        }
    return json.dumps(fields, separators=(",", ":"))


def read(text: str, reader: Reader = Reader.V0_10_0) -> Registration:
    """A registration as this kind of software understands it. Errors: UnreadableRegistration."""
    fields = _fields(text)
    version = fields["version"]
    if version < VERSIONS[0] or (reader is Reader.V0_9_0_0 and version > Reader.V0_9_0_0.value):
        raise UnreadableRegistration(
            f"broker registration of version {version}: a reader of this kind knows 1 and 2; upgrade it to 0.9.0.1 first"
        )
    features = fields.get("features", {})
    try:
        return Registration(
            host=fields["host"],
            port=fields["port"],
            endpoints=tuple(fields.get("endpoints", ())),
            rack=RackId(fields["rack"]) if reader is Reader.V0_10_0 and "rack" in fields else None,
            jmx_port=fields.get("jmx_port", -1),
            timestamp=fields.get("timestamp", "0"),
            listeners=fields.get("listener_security_protocol_map", {}),
            features={name: (one["min_version"], one["max_version"]) for name, one in features.items()},
        )
    except (KeyError, TypeError) as error:
        raise UnreadableRegistration(f"broker registration: no {error} in version {version}; write it anew") from error


def _fields(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UnreadableRegistration(f"broker registration: no JSON: {error}; write it anew") from error
    if not isinstance(found, dict) or type(found.get("version")) is not int:
        raise UnreadableRegistration("broker registration: no object with a version; write it anew")
    return found
