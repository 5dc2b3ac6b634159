"""The placement of a spec, for `rackspan place plan`: a document in, an assignment out, no cluster needed.

Begin with `run`; spec_format.py defines the document.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Annotated, Final, TypedDict

import numpy as np
from msgspec import Meta

from rackspan.audit.loads import replica_bound
from rackspan.documents import Count, DecimalKey, RangeDocument
from rackspan.errors import UsageError
from rackspan.model import Broker, Int32s, Int64s, RackId, even_shares, rack_map
from rackspan.placement.exclusion import Exclusion
from rackspan.placement.kafka.java_random import JavaRandom, Lcg64, RandomGenerator
from rackspan.placement.kafka.rack_alternated import START_INDEX_CONFIG
from rackspan.placement.placer import TopicAssignment
from rackspan.placement.rack_modes import RACK_AWARE_CONFIG, RackAwareMode, aware
from rackspan.placement.registry import PLACERS, Installed, installed_placers, placer_named
from rackspan.placement.spec_format import PlacementSpec, Rng, read
from rackspan.placement.usable_brokers import UsableBroker

RNGS: Final[Mapping[Rng, type[JavaRandom | Lcg64]]] = {Rng.JAVA: JavaRandom, Rng.LCG64: Lcg64}

RACKLESS_IS_A_RACK: Final = frozenset({"striped"})
"""Placers that count brokers without a rack as one more rack, so that nothing is refused and no mode applies."""

FENCED_GET_NOTHING: Final = frozenset({"rack-alternated"})
"""Placers that leave fenced brokers out; to all others they may follow."""

ONE_IN_EACH_RACK: Final = frozenset({"rack-alternated"})
"""Placers whose replicas beyond one in each rack go anywhere (KIP-36); the others spread those too."""


class BoundedRange(RangeDocument):
    bound: Annotated[Count, Meta(description="The least that the fullest broker can hold.")]


class LevelsDocument(TypedDict):
    leaders: RangeDocument
    replicas: BoundedRange


class PlacementDocument(LevelsDocument):
    """A placement from a specification."""

    assignments: Annotated[
        dict[DecimalKey, list[int]], Meta(description="Partition to replicas, preferred leader first.")
    ]


def run(
    document: object, rng: Random, installed: Installed = installed_placers, exclusion: Exclusion = Exclusion()
) -> PlacementDocument:
    """The assignment of a parsed spec without the excluded brokers, as a document.

    Errors: UsageError for an invalid document or an unknown placer, ReplicaPlacementException from the placer.
    """
    spec = read(document)
    for broker in sorted(exclusion.brokers - {broker.id for broker in spec.brokers}):
        raise UsageError(f"--exclude-brokers: the spec has no broker {broker}; name one that it has")
    exclusion.refuse_cost(spec.brokers, spec.replication_factor, _by_rack(spec))
    spec = replace(spec, brokers=exclusion.offered(spec.brokers))
    return assignment_document(spec, place(spec, rng, installed))


def place(spec: PlacementSpec, rng: Random, installed: Installed = installed_placers) -> TopicAssignment:
    """Place a checked spec. Errors: UsageError for an unknown placer, ReplicaPlacementException."""
    placer = placer_named(spec.placer, _configs(spec), _rng(spec, rng), installed)
    try:
        return placer.place(spec.start_partition, spec.partitions, spec.replication_factor, spec.brokers)
    finally:
        placer.close()


def assignment_document(spec: PlacementSpec, assignment: TopicAssignment) -> PlacementDocument:
    """Keys of `assignments` begin at the start partition; `bound` is the least possible maximum of replicas on a broker."""
    rows = assignment.replicas
    return {
        "assignments": {str(partition): row for partition, row in enumerate(rows.tolist(), spec.start_partition)},
        "leaders": _range(_per_broker(spec.brokers, rows[:, :1])),
        "replicas": {**_range(_per_broker(spec.brokers, rows)), "bound": _bound(spec)},
    }


def _configs(spec: PlacementSpec) -> dict[str, str]:
    given = {START_INDEX_CONFIG: spec.start_index, RACK_AWARE_CONFIG: spec.rack_aware}
    return {**spec.configs, **{key: str(value) for key, value in given.items() if value is not None}}


def _rng(spec: PlacementSpec, rng: Random) -> RandomGenerator:
    return RNGS[spec.rng](rng.getrandbits(64) if spec.seed is None else spec.seed)


def _per_broker(brokers: Sequence[UsableBroker], held: Int32s) -> Int64s:
    ids = np.array(sorted(broker.id for broker in brokers), dtype=np.int32)
    return np.bincount(np.searchsorted(ids, held.ravel()), minlength=len(ids))


def _range(counts: Int64s) -> RangeDocument:
    return {"min": int(counts.min()), "max": int(counts.max())}


def _by_rack(spec: PlacementSpec) -> bool:
    # ENFORCED refuses a mixture elsewhere; one that remains means no racks.
    disabled = _configs(spec).get(RACK_AWARE_CONFIG) == RackAwareMode.DISABLED
    mode = RackAwareMode.DISABLED if disabled else RackAwareMode.SAFE
    return spec.placer in RACKLESS_IS_A_RACK or aware(spec.brokers, mode)


def _bound(spec: PlacementSpec) -> int:
    """The bound over the brokers that the placer may use, by rack where it places by rack: a placer of others may ignore racks."""
    brokers = [broker for broker in spec.brokers if not (broker.fenced and spec.placer in FENCED_GET_NOTHING)]
    by_rack = spec.placer in PLACERS and _by_rack(spec)
    racks: list[RackId | None] = [broker.rack if by_rack else None for broker in brokers]
    counted = [Broker(broker.id, rack) for broker, rack in zip(brokers, racks, strict=True)]
    by_replication_factor = np.bincount([spec.replication_factor], weights=[spec.partitions]).astype(np.int64)
    shares = _one_in_each_rack if spec.placer in ONE_IN_EACH_RACK else even_shares
    return replica_bound(rack_map(counted), by_replication_factor, shares)


def _one_in_each_rack(rack_sizes: Int64s, replication_factor: int) -> tuple[Int64s, Int64s]:
    """The fewest and the most replicas of a partition in each rack, shape (racks,), if no rack is left out and that is all."""
    beyond = replication_factor - len(rack_sizes)
    if beyond <= 0:
        return even_shares(rack_sizes, replication_factor)
    return np.ones_like(rack_sizes), np.minimum(rack_sizes, 1 + beyond)
