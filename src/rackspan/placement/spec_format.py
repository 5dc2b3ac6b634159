"""The placement spec as a document: parsed JSON in, a checked `PlacementSpec` out.

Keys, types and ranges are declared here. Figures that no cluster can meet, such as more replicas than brokers, are refused
by the placers, in Kafka's words.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta, Struct

from rackspan.documents import InvalidDocument, convert
from rackspan.errors import UsageError
from rackspan.model.ids import INT32_MAX, INT64_MAX, UNNAMED_RACK, BrokerId, RackId
from rackspan.placement.rack_modes import RackAwareMode
from rackspan.placement.usable_brokers import UsableBroker

PARTITIONS_MAX: Final = 10_000_000
"""Ten times the largest clusters; with a larger figure, a typing mistake would fill the memory."""

DEFAULT_PLACER: Final = "balanced"


class Rng(StrEnum):
    """The random number generator that a seed is for."""

    JAVA = "java"
    """java.util.Random."""
    LCG64 = "lcg64"
    """The generator of Kafka's own placer tests."""


@dataclass(frozen=True, slots=True)
class PlacementSpec:
    """What to place, and with which placer.

    `start_index` fixes where rack-alternated begins (None: drawn); `rack_aware` None leaves partial racks to the placer;
    `seed` None leaves the rng to the caller. `configs` go to the placer as a broker's configs would.
    """

    brokers: tuple[UsableBroker, ...]
    partitions: int
    replication_factor: int
    placer: str = DEFAULT_PLACER
    start_index: int | None = None
    start_partition: int = 0
    rack_aware: RackAwareMode | None = None
    seed: int | None = None
    rng: Rng = Rng.JAVA
    configs: Mapping[str, str] = field(default_factory=dict)


class _Broker(Struct, forbid_unknown_fields=True):
    """A broker as in a snapshot; host and port do not count."""

    id: Annotated[int, Meta(ge=0, le=INT32_MAX)]
    rack: str | None = None
    fenced: bool = False
    host: object = None
    port: object = None


class _Spec(Struct, forbid_unknown_fields=True):
    """Null is an absent key, and so is -1 where Kafka treats it so."""

    brokers: Annotated[list[_Broker], Meta(min_length=1)]
    partitions: Annotated[int, Meta(ge=-INT32_MAX, le=PARTITIONS_MAX)]
    replication_factor: Annotated[int, Meta(ge=-INT32_MAX, le=INT32_MAX)]
    placer: str | None = None
    start_index: Annotated[int, Meta(ge=-1, le=INT32_MAX)] | None = None
    start_partition: Annotated[int, Meta(ge=-1, le=INT32_MAX - PARTITIONS_MAX)] | None = None
    rack_aware: RackAwareMode | None = None
    seed: Annotated[int, Meta(ge=-INT64_MAX - 1, le=INT64_MAX)] | None = None
    rng: Rng | None = None
    configs: dict[str, str] | None = None


def read(document: object) -> PlacementSpec:
    """Check a parsed spec. Errors: UsageError."""
    try:
        given = convert(document, _Spec, "spec")
    except InvalidDocument as error:
        raise UsageError(str(error)) from None
    return PlacementSpec(
        brokers=_brokers(given.brokers),
        partitions=given.partitions,
        replication_factor=given.replication_factor,
        placer=given.placer or DEFAULT_PLACER,
        start_index=None if given.start_index == -1 else given.start_index,
        start_partition=max(0, given.start_partition or 0),
        rack_aware=given.rack_aware,
        seed=given.seed,
        rng=given.rng or Rng.JAVA,
        configs=given.configs or {},
    )


def _brokers(given: list[_Broker]) -> tuple[UsableBroker, ...]:
    listed: set[int] = set()
    for broker in given:
        if broker.id in listed:
            raise UsageError(f"broker {broker.id}: listed twice; leave one of them out")
        listed.add(broker.id)
    return tuple(
        UsableBroker(
            BrokerId(broker.id), None if broker.rack in (None, UNNAMED_RACK) else RackId(broker.rack), broker.fenced
        )
        for broker in given
    )
