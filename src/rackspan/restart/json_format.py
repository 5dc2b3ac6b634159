"""Judged stops and restart plans as JSON documents. Scripts read them, and the tables on a terminal are drawn from them."""

from typing import Annotated, TypedDict

from msgspec import Meta

from rackspan.documents import Amount, AtLeastOne, Count, UtcTime
from rackspan.model import ClusterSnapshot
from rackspan.restart.blocked import BlockedBroker
from rackspan.restart.forecast import Forecast
from rackspan.restart.gain import ForcingPartitions
from rackspan.restart.lists import Suffering
from rackspan.restart.planner import RestartBatch, RestartPlan
from rackspan.restart.safe import StopJudgement, VotersLeft
from rackspan.restart.stopping import BlockOn
from rackspan.text import utc_text


class SufferingDocument(TypedDict):
    topic: str
    partition: Count
    reason: str


class VotersDocument(TypedDict):
    voters: AtLeastOne
    left: Count
    majority: AtLeastOne


class StopDocument(TypedDict):
    """Whether brokers may stop together, and each partition that suffers, in the list of its gravest harm."""

    as_of: Annotated[UtcTime | None, Meta(description="UTC; null if a snapshot does not say.")]
    safe: bool
    brokers: list[int]
    margin: Count
    loses_leader: list[SufferingDocument]
    refuses_writes: Annotated[
        list[SufferingDocument], Meta(description="acks=all is refused, by min.insync.replicas or min.insync.racks.")
    ]
    below_margin: Annotated[list[SufferingDocument], Meta(description="They keep the minimum, without the margin.")]
    one_copy: Annotated[list[SufferingDocument], Meta(description="They block only with --block-on one-copy.")]
    single_replica: Annotated[list[SufferingDocument], Meta(description="They block only with --block-on rf1.")]
    without_margin: Annotated[
        list[SufferingDocument], Meta(description="Their replication factor allows no such margin; they do not block.")
    ]
    accepted: Annotated[list[SufferingDocument], Meta(description="They would block, but for --accept.")]
    already: Annotated[list[SufferingDocument], Meta(description="Harmed now, and not worse without the brokers.")]
    controllers: VotersDocument | None
    partial: Annotated[list[str], Meta(description="What could not be read and decides, in words.")]


class LoadDocument(TypedDict):
    broker: int
    leaders_now: Count
    leaders: Count
    bytes_now: Count | None
    bytes: Annotated[Count | None, Meta(description="null: the size of a partition is not known.")]


class BatchDocument(TypedDict):
    brokers: list[int]
    reason: str
    leaders_moved: Count
    most_leaders: Annotated[Amount, Meta(description="Leaders of the most loaded survivor, as a multiple of now.")]
    most_bytes: Annotated[
        Amount | None, Meta(description="Bytes led by the most loaded survivor, as a multiple of now; null: not known.")
    ]
    at_minimum: Annotated[Count, Meta(description="Partitions left with exactly min.insync.replicas in sync.")]
    survivors: Annotated[list[LoadDocument], Meta(description="Brokers that stay up and whose load changes.")]
    waits_for: Annotated[
        list[str],
        Meta(
            description="Partitions that need their replicas on brokers that are up in sync before the batch may stop; the first of them."
        ),
    ]


class BlockedDocument(TypedDict):
    broker: int
    partitions: Annotated[list[SufferingDocument], Meta(description="The first of them.")]
    partition_count: Count
    remedy: str


class GainDocument(TypedDict):
    """A reassignment after which fewer batches are enough."""

    command: str
    moves: Annotated[AtLeastOne, Meta(description="Replicas that it copies.")]
    batches: Annotated[Count, Meta(description="Batches of the restart afterwards.")]


class ForcingDocument(TypedDict):
    """Partitions that forbid to stop a whole rack, if there are more batches than racks."""

    partitions: Annotated[list[str], Meta(description="The first of them.")]
    partition_count: AtLeastOne
    topics: list[str]
    racks: AtLeastOne
    gain: Annotated[GainDocument | None, Meta(description="null: no reassignment is known that saves a batch.")]


class RestartPlanDocument(TypedDict):
    """Batches in order, each safe as the cluster was read, once those before it are up and in sync again."""

    cluster_id: str | None
    as_of: Annotated[UtcTime | None, Meta(description="UTC; null if a snapshot does not say.")]
    margin: Count
    block_on: list[BlockOn]
    accept: Annotated[str | None, Meta(description="Topics that may suffer: a regular expression of whole names.")]
    without_margin: Annotated[Count, Meta(description="Partitions whose replication factor allows no such margin.")]
    max_batch: AtLeastOne | None
    down: Annotated[
        list[int], Meta(description="Brokers that are fenced, or whose controller is dead: they come first.")
    ]
    batches: list[BatchDocument]
    batches_if_up: Annotated[
        Count | None, Meta(description="Batches that would do if those were up; null: nothing is down, or not known.")
    ]
    lower_bound: Annotated[
        Count, Meta(description="No plan that can be carried out from the state that was read has fewer batches.")
    ]
    bound_reason: str
    forcing: ForcingDocument | None
    blocked: Annotated[list[BlockedDocument], Meta(description="Brokers that can never be stopped safely.")]
    partial: Annotated[list[str], Meta(description="What could not be read and decides, in words.")]


def stop_document(snapshot: ClusterSnapshot, judged: StopJudgement) -> StopDocument:
    return {
        "as_of": _as_of(snapshot),
        "safe": judged.safe,
        "brokers": list(judged.brokers),
        "margin": judged.policy.margin,
        "loses_leader": _partitions(judged.loses_leader),
        "refuses_writes": _partitions(judged.refuses_writes),
        "below_margin": _partitions(judged.below_margin),
        "one_copy": _partitions(judged.one_copy),
        "single_replica": _partitions(judged.single_replica),
        "without_margin": _partitions(judged.without_margin),
        "accepted": _partitions(judged.accepted),
        "already": _partitions(judged.already),
        "controllers": _voters(judged.controllers),
        "partial": list(judged.partial),
    }


def restart_plan_document(plan: RestartPlan) -> RestartPlanDocument:
    return {
        "cluster_id": plan.snapshot.cluster_id,
        "as_of": _as_of(plan.snapshot),
        "margin": plan.stop.margin,
        "block_on": sorted(plan.stop.block_on),
        "accept": None if plan.stop.accepted is None else plan.stop.accepted.pattern,
        "without_margin": plan.without_margin,
        "max_batch": plan.request.max_batch,
        "down": list(plan.down),
        "batches": [_batch(batch) for batch in plan.batches],
        "batches_if_up": plan.batches_if_up,
        "lower_bound": plan.lower_bound.batches,
        "bound_reason": plan.lower_bound.reason,
        "forcing": _forcing(plan.forcing),
        "blocked": [_blocked(broker) for broker in plan.blocked],
        "partial": list(plan.partial),
    }


def _as_of(snapshot: ClusterSnapshot) -> str | None:
    return None if snapshot.taken_at is None else utc_text(snapshot.taken_at)


def _partitions(partitions: Suffering) -> list[SufferingDocument]:
    return [
        {"topic": partition.topic, "partition": partition.partition, "reason": partition.reason}
        for partition in partitions
    ]


def _voters(voters: VotersLeft | None) -> VotersDocument | None:
    if voters is None:
        return None
    return {"voters": voters.voters, "left": voters.left, "majority": voters.majority}


def _batch(batch: RestartBatch) -> BatchDocument:
    forecast = batch.forecast
    return {
        "brokers": list(batch.brokers),
        "reason": batch.reason,
        "leaders_moved": forecast.leaders_moved,
        "most_leaders": forecast.most_leaders,
        "most_bytes": forecast.most_bytes,
        "at_minimum": forecast.at_minimum,
        "survivors": _loads(forecast),
        "waits_for": list(batch.waits_for),
    }


def _loads(forecast: Forecast) -> list[LoadDocument]:
    return [
        {
            "broker": load.broker,
            "leaders_now": load.leaders_now,
            "leaders": load.leaders,
            "bytes_now": load.bytes_now,
            "bytes": load.bytes,
        }
        for load in forecast.survivors
    ]


def _blocked(blocked: BlockedBroker) -> BlockedDocument:
    return {
        "broker": blocked.broker,
        "partitions": _partitions(blocked.partitions),
        "partition_count": blocked.partition_count,
        "remedy": blocked.remedy,
    }


def _forcing(forcing: ForcingPartitions | None) -> ForcingDocument | None:
    if forcing is None:
        return None
    gain = forcing.gain
    return {
        "partitions": list(forcing.partitions),
        "partition_count": forcing.partition_count,
        "topics": list(forcing.topics),
        "racks": forcing.racks,
        "gain": None if gain is None else {"command": gain.command, "moves": gain.moves, "batches": gain.batches},
    }
