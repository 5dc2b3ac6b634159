"""Words that are made once for many findings are those of each finding by itself."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.audit import RackPolicy, audit
from rackspan.audit.batch import PartitionBatch, snapshot_batch
from rackspan.audit.constraints import (
    PARTITION_CONSTRAINTS,
    Findings,
    KnownWords,
    PartitionConstraint,
    finding_columns,
    known_words,
)
from rackspan.audit.constraints.partitions import partition_findings, reported
from rackspan.audit.findings import Finding, in_order
from rackspan.audit.judge import topic_findings, whole_cluster_findings
from rackspan.audit.loads import loads
from rackspan.model import Broker, BrokerId, ClusterSnapshot, Int64s, RackId, Topic, TopicName, columns
from tests.snapshots import of_one_topic
from tests.strategies import policies, snapshots, successors


def one_by_one(batch: PartitionBatch) -> list[Finding]:
    found = reported(batch)
    return [
        constraint.finding(replace(batch), row)
        for constraint in PARTITION_CONSTRAINTS
        for row in np.flatnonzero(found[constraint.name]).tolist()
    ]


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[ClusterSnapshot, RackPolicy]]:
    """Snapshots of two clusters in turn, each judged by one of two policies."""
    two = draw(st.tuples(snapshots(), snapshots()))
    drawn = draw(st.tuples(policies(), policies()))
    found = []
    for _ in range(3):
        found += [(snapshot, policy) for snapshot in two for policy in drawn]
        two = draw(successors(two[0])), draw(successors(two[1]))
    return found


@pytest.mark.slow
@given(histories())
def test_words_kept_from_other_snapshots_are_those_of_each_finding(
    history: list[tuple[ClusterSnapshot, RackPolicy]],
) -> None:
    known = KnownWords()
    for snapshot, policy in history:
        batch = snapshot_batch(snapshot, policy)
        assert list(finding_columns(batch, known)) == one_by_one(batch)
        assert list(partition_findings(batch)) == one_by_one(batch)


@given(snapshots(), policies())
def test_findings_whose_words_are_made_when_read_are_those_of_a_sorted_list(
    snapshot: ClusterSnapshot, policy: RackPolicy
) -> None:
    batch = snapshot_batch(snapshot, policy)
    others = [*whole_cluster_findings(batch.members, loads(batch)), *topic_findings(batch)]
    wanted = in_order([*others, *one_by_one(batch)])
    found = Findings(finding_columns(batch, KnownWords()), others)
    assert found.counts == Counter((one.severity, one.constraint) for one in wanted)
    assert [found[place] for place in reversed(range(len(wanted)))] == wanted[::-1]
    assert found[1:3] == wanted[1:3]
    assert found == wanted


def test_no_words_are_made_for_what_an_audit_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    of = KnownWords.of

    def counting(
        known: KnownWords, batch: PartitionBatch, constraint: PartitionConstraint, rows: Int64s
    ) -> list[known_words.Words]:
        made.extend(rows.tolist())
        return of(known, batch, constraint, rows)

    monkeypatch.setattr(KnownWords, "of", counting)
    crowded = of_one_topic({0: "a", 1: "a", 2: "b"}, [[0, 1], [1, 0], [0, 2]], config={"min.insync.replicas": "1"})
    judged = audit(crowded, RackPolicy())
    assert (judged.clean, judged.survives_any_rack, len(judged.findings)) == (False, False, sum(judged.counts.values()))
    assert made == []
    assert (judged.findings[0].constraint, judged.findings[0].partition) == ("survives-rack-loss", 0)
    assert made == [0]


def hardened(
    *replicas: list[int], value: str = "1", topic: str = "t", racks: str = "aabc", min_insync_racks: int = 2
) -> PartitionBatch:
    """One topic on racks a, a, b and c that requires two racks in sync; one more of another topic is on every broker."""
    everywhere = list(range(len(racks)))
    snapshot = ClusterSnapshot(
        brokers=tuple(Broker(BrokerId(one), RackId(rack)) for one, rack in enumerate(racks)),
        topics=(Topic(TopicName(topic), config={"min.insync.replicas": value}), Topic(TopicName("wide"))),
        partitions=columns(
            topic=[*(0 for _ in replicas), 1],
            partition=[*range(len(replicas)), 0],
            leader=[*(one[0] for one in replicas), 0],
            replicas=[*replicas, everywhere],
            isr=[*replicas, everywhere],
        ),
    )
    return snapshot_batch(snapshot, RackPolicy(min_insync_racks=min_insync_racks))


def test_what_another_partition_of_the_topic_needs_first_is_part_of_the_words() -> None:
    """Hardening stops the second partition, so that the first one's remedy is another than by itself."""
    known = KnownWords()
    batches = [hardened([0, 2, 3]), hardened([0, 2, 3], [0, 1, 2]), hardened([0, 2, 3], [0, 1, 2, 3])]
    remedies = set()
    for batch in [*batches, *batches]:
        found = list(finding_columns(batch, known))
        assert found == one_by_one(batch)
        remedies |= {one.remedy for one in found if (one.topic, one.partition) == ("t", 0)}
    assert len(remedies) > 1


@pytest.mark.parametrize(
    ("racks", "first", "value", "min_insync_racks"),
    [
        ("ccadbab", [2], "2", 2),
        ("aabb", [1], "3", 1),
        ("bbbdcac", [1, 6], "1", 2),
        ("dddd", [0], "3", 1),
    ],
)
def test_the_most_replicas_of_another_partition_are_part_of_the_words(
    racks: str, first: list[int], value: str, min_insync_racks: int
) -> None:
    """No partition of the topic loses replicas by a remedy for one of them."""
    known, remedies = KnownWords(), set[str]()
    batches = [
        hardened(first, list(range(factor)), value=value, racks=racks, min_insync_racks=min_insync_racks)
        for factor in (1, 2, 3, 4)
    ]
    for batch in [*batches, *batches]:
        found = list(finding_columns(batch, known))
        assert found == one_by_one(batch)
        remedies |= {one.remedy for one in found if (one.topic, one.partition) == ("t", 0)}
    assert len(remedies) > 1


def test_words_that_name_a_topic_are_made_for_each_topic_and_others_once() -> None:
    known, made = KnownWords(), []
    for topic in ("t", "u", "t"):
        batch = hardened([0, 1, 2], topic=topic)
        made.append([one.remedy for one in finding_columns(batch, known) if one.topic == topic])
    assert made[0] == made[2] != made[1]
    assert all("--topic u" in remedy for remedy in made[1])


def test_too_many_words_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_words, "WORDS_KEPT_MAX", 1)
    known = KnownWords()
    for value in ("1", "2", "3", "1"):
        batch = hardened([0, 1, 2], [0, 2, 3], value=value)
        assert list(finding_columns(batch, known)) == one_by_one(batch)
        assert known.kept <= 1 + len(reported(batch)) * len(batch.rows)
