"""The words of a page about a warehouse: one cluster, topic `orders` of one partition with a broker in each rack, on 2026-11-20 (UTC).

warehouse min_insync_racks=2   an empty warehouse and the policy of its runs
stored 12:00 isr=a,b           what a collector stores at that time: the racks in sync; by=another: a second collector; also=shop: with the same
                               of cluster shop
run                            `pipeline run`, by its own tasks; later=findings: by a later release, whose rows of a table are others
policy min_insync_racks=3      what the next runs judge by
states                         `pipeline table partition_durability`: the state at each snapshot
changes                        the same with `--changes`: what is stored
at 12:05                       the same with `--at`
damaged partitions             the newest data file of a table loses its end
restored                       and has it again
torn snapshots                 the newest entry in the log of a table loses its end
constrained findings           somebody adds a CHECK constraint to a table
erased shop                    somebody deletes a cluster from the landing tables, by delta-rs
check                          `pipeline check --whole`
rebuild                        `pipeline rebuild`
"""

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast
from unittest.mock import patch

from deltalake import DeltaTable

from rackspan.audit import RackPolicy
from rackspan.errors import InvalidSnapshot, RackspanError
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, columns
from rackspan.pipeline import Warehouse, create_warehouse, open_warehouse, rows
from rackspan.pipeline.check import check
from rackspan.pipeline.delta.local_disk import LOG
from rackspan.pipeline.landing.bases import Bases
from rackspan.pipeline.landing.markers import read_markers
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.schemas import LANDING, TABLES, Table
from tests.pipeline.judging.test_task import judging_build
from tests.pipeline.plain_build import refresh

RACKS: Final = ("a", "b", "c")


@dataclass
class Kept:
    """The warehouse of a page, in a folder that goes with it."""

    policy: RackPolicy
    folder: "tempfile.TemporaryDirectory[str]" = field(default_factory=tempfile.TemporaryDirectory)
    collectors: dict[str, Bases] = field(default_factory=dict)
    harmed: tuple[Path, bytes] | None = None

    @classmethod
    def begun(cls, min_insync_racks: str = "1") -> "Kept":
        kept = cls(RackPolicy(min_insync_racks=int(min_insync_racks)))
        create_warehouse(kept.warehouse.root)
        return kept

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse(str(Path(self.folder.name) / "warehouse"))


def stored(kept: Kept, time: str, *, isr: str, by: str = "one", also: str | None = None) -> Iterator[str]:
    in_sync = [RACKS.index(rack) + 1 for rack in isr.split(",")]
    yield from _opened(kept)
    snapshot = ClusterSnapshot(
        cluster_id="main",
        taken_at=_time(time),
        brokers=tuple(Broker(BrokerId(number), RackId(rack)) for number, rack in enumerate(RACKS, 1)),
        topics=(Topic(TopicName("orders"), config={"min.insync.replicas": "2"}),),
        partitions=columns(topic=[0], partition=[0], leader=[in_sync[0]], replicas=[[1, 2, 3]], isr=[in_sync]),
    )
    others = [] if also is None else [replace(snapshot, cluster_id=also)]
    try:
        outcome, *_ = store_all([snapshot, *others], kept.warehouse, kept.collectors.setdefault(by, Bases()))
    except RackspanError as error:
        yield _shown(kept, f"{time}: not stored: {error}")
        return
    if isinstance(outcome, InvalidSnapshot):
        yield _shown(kept, str(outcome))
        return
    known = read_markers(kept.warehouse).at([_time(time)])
    (marker,) = [one for one in known if (one.cluster_id, one.taken_at) == ("main", snapshot.taken_at)]
    if not outcome.new:
        yield f"{time}: is stored already"
    elif marker.base_id is None:
        yield f"{time}: stored whole"
    else:
        yield f"{time}: stored as {'equal to the one before' if marker.unchanged else 'what differs'}"


def _opened(kept: Kept) -> Iterator[str]:
    """What a command repairs that writes to the warehouse, and what is lost."""
    done = create_warehouse(kept.warehouse.root).repair
    yield from (_shown(kept, line) for line in (*done.lines, *done.lost))


def run(kept: Kept, *, later: str | None = None) -> Iterator[str]:
    yield from _opened(kept)
    newer = {} if later is None else {later: replace(TABLES[later], version=TABLES[later].version + 1)}
    with patch.dict(cast("dict[str, Table]", TABLES), newer):
        yield from _judged(kept)


def rebuild(kept: Kept) -> Iterator[str]:
    yield from _judged(kept, rebuild=tuple(TABLES))


def _judged(kept: Kept, **options: Any) -> Iterator[str]:
    try:
        report = refresh(kept.warehouse, kept.policy, judging_build(kept.warehouse), **options)
    except RackspanError as error:
        yield _shown(kept, f"nothing is judged: {error}")
        return
    counts = {"again": report.remade, "left out": len(report.quarantined)}
    yield f"judged {report.snapshots}" + "".join(f", {number} {words}" for words, number in counts.items() if number)


def policy(kept: Kept, *, min_insync_racks: str) -> Iterator[str]:
    kept.policy = RackPolicy(min_insync_racks=int(min_insync_racks))
    yield from ()


def states(kept: Kept) -> Iterator[str]:
    yield from _table(kept, "taken_at")


def changes(kept: Kept) -> Iterator[str]:
    yield from _table(kept, "valid_from", changes=True)


def at(kept: Kept, time: str) -> Iterator[str]:
    yield from list(_table(kept, "taken_at", at=_time(time))) or ["nothing is known"]


def _table(kept: Kept, time: str, **options: Any) -> Iterator[str]:
    left_out: list[str] = []
    try:
        open_warehouse(kept.warehouse.root)
        for row in rows(kept.warehouse, "partition_durability", left_out=left_out.append, **options):
            state = "gone" if row.get("gone") else row["state"]
            yield f"{row[time][11:16]} {row['topic']}-{row['partition']} {state}"
    except RackspanError as error:
        yield _shown(kept, str(error))
    yield from (_shown(kept, line) for line in left_out)


def damaged(kept: Kept, table: str) -> Iterator[str]:
    file = max(Path(kept.warehouse.root, "tables", table).rglob("*.parquet"), key=lambda one: one.stat().st_mtime_ns)
    kept.harmed = file, file.read_bytes()
    file.write_bytes(kept.harmed[1][:70])
    yield from ()


def restored(kept: Kept) -> Iterator[str]:
    assert kept.harmed is not None
    kept.harmed[0].write_bytes(kept.harmed[1])
    yield from ()


def torn(kept: Kept, table: str) -> Iterator[str]:
    entry = max(Path(kept.warehouse.root, "tables", table, LOG).glob("*.json"))
    entry.write_bytes(entry.read_bytes()[:70])
    yield from ()


def constrained(kept: Kept, table: str) -> Iterator[str]:
    DeltaTable(kept.warehouse.table(table)).alter.add_constraint({"no_tests": "topic <> 'test'"})
    yield from ()


def erased(kept: Kept, cluster: str) -> Iterator[str]:
    for table in LANDING:
        DeltaTable(kept.warehouse.table(table)).delete(f"cluster_id = '{cluster}'")
    yield from ()


def judged_by_check(kept: Kept) -> Iterator[str]:
    problems = check(kept.warehouse, now=_time("23:00"), whole=True).problems
    for problem in problems:
        yield _shown(kept, f"{problem.kind}, {problem.table or problem.cluster}: {problem.problem}")
        yield _shown(kept, f"  fix with: {problem.remedy}")
    if not problems:
        yield "nothing found"


def _time(time: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-20T{time}:00").replace(tzinfo=UTC)


def _shown(kept: Kept, line: str) -> str:
    """Without what is different each time or by release: the folder, names of files and runs, sizes."""
    named = re.sub(
        r"(?:\d{10}-\w+/)?day=([\d-]+)/part-[\w-]+", r"day=\1/…", line.replace(kept.warehouse.root, "WAREHOUSE")
    )
    sized = re.sub(r"its log says [\d,]+", "its log says …", named)
    return re.sub(r"version \d+; this one makes \d+", "version …; this one makes …", sized)


WORDS: Final[Mapping[str, Callable[..., Iterator[str]]]] = {
    "stored": stored,
    "run": run,
    "rebuild": rebuild,
    "policy": policy,
    "states": states,
    "changes": changes,
    "at": at,
    "damaged": damaged,
    "restored": restored,
    "torn": torn,
    "constrained": constrained,
    "erased": erased,
    "check": judged_by_check,
}
