"""`inter.broker.protocol.version`: which formats brokers of a version exchange (KIP-36, "Compatibility, Deprecation, and
Migration Plan").

FEATURES lists which version has which format, in the ZooKeeper era and under KRaft. Kafka 4 has replaced the config with
the cluster's metadata version; here each broker keeps it, so that the rolling upgrade of KIP-36 can be tested. Versions are compared by their numbers: 0.9.0.X and 0.9.0.1 are 0.9.0, 0.10.0-IV1 is 0.10.0.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from rackspan.cluster.core.configs import LATEST_PROTOCOL, PROTOCOL_VERSION

Numbers: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ProtocolFeature:
    """A format or ability that versions from `since` on have, and versions from `until` on no longer have."""

    name: str
    since: str
    until: str | None
    era: str


FEATURES: Final = (
    ProtocolFeature("registration JSON 1", "0.8.0", "0.8.2", "ZooKeeper"),
    ProtocolFeature("registration JSON 2: end points", "0.8.2", "0.10.0", "ZooKeeper"),
    ProtocolFeature("registration JSON 3: rack", "0.10.0", "0.10.2", "ZooKeeper"),
    ProtocolFeature("registration JSON 4: listener names", "0.10.2", "2.7", "ZooKeeper"),
    ProtocolFeature("registration JSON 5: features", "2.7", "4.0", "ZooKeeper"),
    ProtocolFeature("BrokerRegistration request with rack", "3.0", None, "KRaft"),
    ProtocolFeature("UpdateMetadata 0: id, host, port", "0.8.0", "0.9.0", "ZooKeeper"),
    ProtocolFeature("UpdateMetadata 1: end points", "0.9.0", "0.10.0", "ZooKeeper"),
    ProtocolFeature("UpdateMetadata 2: rack", "0.10.0", "0.10.2", "ZooKeeper"),
    ProtocolFeature("UpdateMetadata 3 to 8", "0.10.2", "4.0", "ZooKeeper"),
    ProtocolFeature("metadata log fetched by brokers", "3.0", None, "KRaft"),
    ProtocolFeature("Metadata 0: no rack", "0.8.0", None, "both"),
    ProtocolFeature("Metadata 1: rack, controller, internal topics", "0.10.0", None, "both"),
    ProtocolFeature("rack-aware placement", "0.10.0", None, "both"),
    ProtocolFeature("replica.placer.class.name", "4.1", None, "KRaft, rackspan alone"),
)


def version_numbers(version: str) -> Numbers:
    """(0, 9, 0) of "0.9.0.X", (2, 7) of "2.7-IV2". Errors: ValueError."""
    plain = version.partition("-")[0].split(".")
    count = 3 if plain[0] == "0" else 2
    return tuple(int(part) for part in plain[:count])


def at_least(version: str, least: str) -> bool:
    return version_numbers(version) >= version_numbers(least)


def registration_version(version: str) -> int:
    """The version of the JSON that a broker registers with: every broker of the protocol version can read it."""
    steps = (("2.7", 5), ("0.10.2", 4), ("0.10.0", 3), ("0.8.2", 2))
    return next((number for since, number in steps if at_least(version, since)), 1)


def update_metadata_version(version: str) -> int:
    """The version of UpdateMetadata that a controller sends to a broker; 2 is the newest in KIP-36."""
    return 2 if at_least(version, "0.10.0") else 1 if at_least(version, "0.9.0") else 0


def version_error(version: str) -> str | None:
    """The error of a text that is no version; None for a version."""
    try:
        version_numbers(version)
    except ValueError:
        return f"{PROTOCOL_VERSION} {version!r}: no version of Kafka; write it as 0.10.0 or {LATEST_PROTOCOL}"
    return None
