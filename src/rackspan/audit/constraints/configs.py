"""Warnings about configs of topics: those by which acks=all guarantees little, throttles that were left behind, and unknown ones."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from rackspan.audit.batch import PartitionBatch, Requirements
from rackspan.audit.constraints.remedies import set_min_insync_replicas
from rackspan.audit.findings import BOOTSTRAP_SERVER, Finding, Severity
from rackspan.audit.policy import SURVIVE_CODES, Survive
from rackspan.model import MIN_INSYNC_REPLICAS, Bools
from rackspan.model.topic import FOLLOWER_REPLICAS, LEADER_REPLICAS, UNCLEAN_LEADER_ELECTION

ACCEPTS_LOSS: Final = SURVIVE_CODES.index(Survive.NONE)

CONFIGS: Final = f"kafka-configs.sh {BOOTSTRAP_SERVER} --alter --entity-type topics --entity-name"


def config_findings(batch: PartitionBatch) -> Iterator[Finding]:
    """The findings of every topic of the batch, which holds each of them completely."""
    weak = _weak_topics(batch)
    for code, row in _first_rows(batch):
        if not batch.required.known[row]:
            yield _unknown(batch.topics[code])
        if weak[code]:
            yield _one_in_sync(batch, row)
        if batch.required.unclean_election[row] and batch.required.survive[row] != ACCEPTS_LOSS:
            yield _unclean_election(batch.topics[code])


def throttle_findings(batch: PartitionBatch) -> Iterator[Finding]:
    """Topics whose throttles were left behind, unless anything in the cluster may be being reassigned: they may be of that.

    The batch holds each of its topics completely.
    """
    for code, row in _first_rows(batch):
        if throttles := _throttles(batch.required, row):
            yield _left_behind(batch.topics[code], throttles)


def _first_rows(batch: PartitionBatch) -> Iterator[tuple[int, int]]:
    """Each topic's code and first row."""
    codes, first = np.unique(batch.rows.topic, return_index=True)
    yield from zip(codes.tolist(), first.tolist(), strict=True)


def _unknown(topic: str) -> Finding:
    return Finding(
        "min-insync-replicas-unknown",
        Severity.WARNING,
        f"{MIN_INSYNC_REPLICAS} is not in the snapshot, and is judged as 1",
        f"grant DESCRIBE_CONFIGS on topic {topic}, and take the snapshot again",
        topic,
    )


def _one_in_sync(batch: PartitionBatch, row: int) -> Finding:
    return Finding(
        "min-insync-replicas-one",
        Severity.WARNING,
        f"{MIN_INSYNC_REPLICAS} is 1: the leader may acknowledge acks=all by itself, and the record is lost with it; with 2 the "
        f"loss of a {SURVIVE_CODES[int(batch.required.survive[row])]} stops no writes",
        set_min_insync_replicas(batch, row, 2),
        batch.topic(row),
    )


def _unclean_election(topic: str) -> Finding:
    return Finding(
        "unclean-leader-election",
        Severity.WARNING,
        f"{UNCLEAN_LEADER_ELECTION} is true: a replica that is not in sync may become leader, and acknowledged records are lost",
        f"{CONFIGS} {topic} --add-config {UNCLEAN_LEADER_ELECTION}=false",
        topic,
    )


def _throttles(required: Requirements, row: int) -> list[str]:
    of_topic = ((LEADER_REPLICAS, required.leader_throttles), (FOLLOWER_REPLICAS, required.follower_throttles))
    return [key for key, is_set in of_topic if is_set[row]]


def _left_behind(topic: str, throttles: list[str]) -> Finding:
    return Finding(
        "throttle-left-behind",
        Severity.WARNING,
        f"{' and '.join(throttles)} {'is' if len(throttles) == 1 else 'are'} set, and nothing is being reassigned: followers may fall behind",
        f"{CONFIGS} {topic} --delete-config {','.join(throttles)}",
        topic,
    )


def _weak_topics(batch: PartitionBatch) -> Bools:
    """Topics of which one of several replicas may acknowledge acks=all alone, while two would stop it at no loss. Shape (topics,)."""
    required = batch.required
    chosen = required.known & (required.min_insync_replicas == 1) & (required.min_insync_racks == 1)
    chosen &= required.survive != ACCEPTS_LOSS
    some = batch.take(chosen)
    raised = replace(some, required=replace(some.required, min_insync_replicas=np.full(len(some.rows), 2)))
    stopped = (
        raised.worst_loss_placed.harmed
        | raised.worst_loss_now.harmed
        | (raised.isr_size < 2)
        | (raised.replication_factor < 2)
    )
    weak = np.zeros(len(batch.topics), dtype=np.bool_)
    weak[some.rows.topic] = True
    weak[some.rows.topic[stopped]] = False
    return weak
