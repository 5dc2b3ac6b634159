"""Changes put together again equal every snapshot judged whole: a thousand random histories in memory, without a warehouse.

test_at_each_snapshot.py has fewer of them through landing tables, runs and readers.
"""

import random
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pytest

from rackspan.audit import RackPolicy
from rackspan.audit.batch import requirements, snapshot_batch
from rackspan.audit.constraints import KnownWords, finding_columns
from rackspan.audit.judge import internal, topic_findings, whole_cluster_findings
from rackspan.audit.loads import loads
from rackspan.audit.outage import judge_losses, losses_each_rack
from rackspan.model import ClusterSnapshot
from rackspan.pipeline.changes.difference import Contents, changes
from rackspan.pipeline.judging.read import SnapshotPart
from rackspan.pipeline.judging.rows import (
    durability_rows,
    finding_rows,
    harm_rows,
    loss_rows,
    partition_finding_rows,
)
from rackspan.pipeline.landing.bases import GRAINS, VOLATILE
from rackspan.pipeline.landing.rows import content
from rackspan.pipeline.schemas import GONE, TABLES
from tests.depth import at_depth
from tests.pipeline.landing.test_bases import random_history

HISTORIES: Final = at_depth(check=50, test=100, soak=20_000)
AT_ONCE: Final = 50

POLICIES: Final = (RackPolicy(), RackPolicy(min_insync_racks=2))


def judged_whole(snapshot: ClusterSnapshot, policy: RackPolicy) -> dict[str, pa.Table]:
    """The rows of every table but `drift`, which has changes of its own, and of what landing tables hold."""
    batch = snapshot_batch(snapshot, policy)
    required = requirements(snapshot.topics, policy)
    ids = [topic.topic_id for topic in snapshot.topics]
    part = SnapshotPart(batch, internal(snapshot.topics), ids, required, snapshot.partial)
    losses = judge_losses(batch, part.internal, losses_each_rack(batch.members))
    others = [*topic_findings(batch), *whole_cluster_findings(batch.members, loads(batch))]
    return {
        "partition_durability": durability_rows(part),
        "findings": pa.concat_tables(
            [partition_finding_rows(finding_columns(batch, KnownWords())), finding_rows(others)]
        ),
        "outage_impact": pa.concat_tables([harm_rows(losses), loss_rows(losses)]),
        **content(snapshot),
    }


def grain(name: str) -> Sequence[str]:
    return TABLES[name].grain[2:] if name in TABLES else GRAINS[name]


def put_together(rng: random.Random, name: str, whole: Sequence[pa.Table]) -> Iterator[pa.Table]:
    """Each snapshot's rows out of what would be stored, where every snapshot is whole or builds on one before it."""
    ids = [f"{number:03}" for number in range(len(whole))]
    bases: dict[str, str | None] = {}
    stored = []
    for number, rows in enumerate(whole):
        base = None if not number or rng.random() < 0.2 else number - 1
        bases[ids[number]] = None if base is None else ids[base]
        of = (
            rows.append_column(GONE, pa.nulls(len(rows), pa.bool_()))
            if base is None
            else changes(whole[base], rows, grain(name), VOLATILE)
        )
        stored.append(of.append_column("snapshot_id", pa.array([ids[number]] * len(of), pa.string())))
    contents = Contents(grain(name), pa.concat_tables(stored), bases)
    return (contents.of(identity) for identity in ids)


def as_set(rows: pa.Table) -> list[str]:
    columns = sorted(set(rows.column_names) - {*VOLATILE, GONE})
    return sorted(map(repr, rows.select(columns).to_pylist()))


def check_history(seed: int) -> None:
    rng = random.Random(seed)
    history, policy = random_history(rng), rng.choice(POLICIES)
    whole = [judged_whole(snapshot, policy) for snapshot in history]
    for name in whole[0]:
        tables = [rows[name] for rows in whole]
        for place, (found, wanted) in enumerate(zip(put_together(rng, name, tables), tables, strict=True)):
            assert as_set(found) == as_set(wanted), (seed, name, place)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, HISTORIES, AT_ONCE))
def test_changes_put_together_are_what_judging_every_snapshot_whole_gives(first: int) -> None:
    for seed in range(first, min(first + AT_ONCE, HISTORIES)):
        check_history(seed)
