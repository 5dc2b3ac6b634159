"""`inter.broker.protocol.version`: what brokers of a version may say to each other (KIP-36, Compatibility and migration).

FEATURES is the table of what belongs to which version, the ZooKeeper era and KRaft. Kafka 4 has retired the config in
favour of the cluster's metadata version; here it is kept, for each broker, so that the proposal's rolling upgrade can be
walked through. Versions are compared by their numbers: 0.9.0.X and 0.9.0.1 are 0.9.0, 0.10.0-IV1 is 0.10.0.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

Numbers: TypeAlias = tuple[int, ...]

PROTOCOL_CONFIG: Final = "inter.broker.protocol.version"
LATEST: Final = "4.1"


@dataclass(frozen=True, slots=True)
class Feature:
    """Something that came with a version and, where `until` says so, went with another."""

    name: str
    since: str
    until: str | None
    """The first version without it."""
    era: str


FEATURES: Final = (
    Feature("registration JSON 1", "0.8.0", "0.8.2", "ZooKeeper"),
    Feature("registration JSON 2: end points", "0.8.2", "0.10.0", "ZooKeeper"),
    Feature("registration JSON 3: rack", "0.10.0", "0.10.2", "ZooKeeper"),
    Feature("registration JSON 4: listener names", "0.10.2", "2.7", "ZooKeeper"),
    Feature("registration JSON 5: features", "2.7", "4.0", "ZooKeeper"),
    Feature("BrokerRegistration request with rack", "3.0", None, "KRaft"),
    Feature("UpdateMetadata 0: id, host, port", "0.8.0", "0.9.0", "ZooKeeper"),
    Feature("UpdateMetadata 1: end points", "0.9.0", "0.10.0", "ZooKeeper"),
    Feature("UpdateMetadata 2: rack", "0.10.0", "0.10.2", "ZooKeeper"),
    Feature("UpdateMetadata 3 to 8", "0.10.2", "4.0", "ZooKeeper"),
    Feature("metadata log fetched by brokers", "3.0", None, "KRaft"),
    Feature("Metadata 0: no rack", "0.8.0", None, "both"),
    Feature("Metadata 1: rack, controller, internal topics", "0.10.0", None, "both"),
    Feature("rack-aware placement", "0.10.0", None, "both"),
    Feature("replica.placer.class.name", "4.1", None, "KRaft, rackspan alone"),
)


def numbers(version: str) -> Numbers:
    """(0, 9, 0) of "0.9.0.X", (2, 7) of "2.7-IV2". Errors: ValueError."""
    plain = version.partition("-")[0].split(".")
    wanted = 3 if plain[0] == "0" else 2
    return tuple(int(part) for part in plain[:wanted])


def at_least(version: str, wanted: str) -> bool:
    return numbers(version) >= numbers(wanted)


def has(version: str, feature: Feature) -> bool:
    """Whether brokers that speak `version` have the feature."""
    return at_least(version, feature.since) and not (feature.until is not None and at_least(version, feature.until))


def registration_version(version: str) -> int:
    """Of the JSON that a broker writes of itself: what every broker of the protocol version can read."""
    steps = (("2.7", 5), ("0.10.2", 4), ("0.10.0", 3), ("0.8.2", 2))
    return next((number for since, number in steps if at_least(version, since)), 1)


def update_metadata_version(version: str) -> int:
    """Of the UpdateMetadata request a controller sends to a broker: 2 is the newest that the proposal knows."""
    return 2 if at_least(version, "0.10.0") else 1 if at_least(version, "0.9.0") else 0


def complaint(version: str) -> str | None:
    """Why the text is no version; None if it is one."""
    try:
        numbers(version)
    except ValueError:
        return f"{PROTOCOL_CONFIG} {version!r}: no version of Kafka; write it as 0.10.0 or {LATEST}"
    return None
