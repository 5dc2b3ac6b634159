"""What to do first by the tables of a warehouse, read without Spark.

Risks are those of the newest snapshot that a run has judged; savings those of the newest hour of `advice`, which has readings only. How
long each was a risk follows from `durability_time`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from rackspan.advice import Advice, ranked, risks
from rackspan.advice.advice import Concern
from rackspan.audit import RackPolicy, audit
from rackspan.errors import InvalidWarehouse, UsageError
from rackspan.model import ClusterSnapshot
from rackspan.pipeline.hours.work import hour_of
from rackspan.pipeline.report.from_warehouse import StoredReadings, latest_snapshots, stored_readings
from rackspan.pipeline.runs import Run, last_run
from rackspan.pipeline.schemas import Table
from rackspan.pipeline.schemas.hours import ADVICE, DURABILITY_TIME
from rackspan.pipeline.table import table_files
from rackspan.pipeline.warehouse import Warehouse, naming_check

RISK_DAYS: Final = 30
"""Seconds at risk are counted from so many days before the newest snapshot on."""

_NOT_AT_RISK: Final = ("ok", "known", "unknown")


@dataclass(frozen=True, slots=True)
class StoredAdvice:
    """Advice, and for how many seconds the worst partition or rack that it is about was at risk: None if that is not known."""

    advice: Advice
    currency: str | None = None
    seconds_at_risk: float | None = None


def advise_stored(
    warehouse: Warehouse, policy: RackPolicy, cluster_id: str | None = None
) -> tuple[ClusterSnapshot, list[StoredAdvice], datetime | None, tuple[str, ...]]:
    """The newest judged snapshot, what to do as it is ranked, the hour of the savings, None without readings, and what could not be read.

    Errors: InvalidWarehouse where nothing has been run; UsageError for a cluster that it lacks, or several of which none is named.
    """
    run = last_run(warehouse)
    if run is None:
        raise InvalidWarehouse(
            f"{warehouse.root}: has no tables yet; run rackspan pipeline run --warehouse {warehouse.root}"
        )
    with naming_check(warehouse):
        snapshot = _chosen(latest_snapshots(warehouse, run), cluster_id)
        readings = _readings(warehouse, run, snapshot)
        hour = None if readings is None else hour_of(readings.newest)
        unread = () if readings is None or hour is None else readings.unread_since(hour)
        rows = _rows(warehouse, run, ADVICE, snapshot, ("hour", *_COLUMNS))
        savings = [row for row in rows if row["hour"] == hour and row["concern"] == Concern.MONEY]
        seconds = _seconds_at_risk(warehouse, run, snapshot)
    currencies = {(row["kind"], row["topic"], row["group_id"]): row["currency"] for row in savings}
    found = ranked([*risks(snapshot, policy, audit(snapshot, policy).findings), *map(_advice, savings)])
    return (
        snapshot,
        [
            StoredAdvice(
                advice,
                currencies.get((advice.kind, advice.topic, advice.group)),
                None if advice.concern is Concern.MONEY else seconds.get(advice.topic),
            )
            for advice in found
        ],
        hour,
        tuple(dict.fromkeys((*snapshot.unread, *unread))),
    )


_COLUMNS: Final = (
    *("concern", "kind", "topic", "group_id", "reason", "bytes_a_month", "money_a_month", "currency"),
    *("command", "cost", "undo", "assumption", "rank"),
)


def _chosen(latest: Mapping[str, ClusterSnapshot], cluster_id: str | None) -> ClusterSnapshot:
    known = ", ".join(sorted(latest))
    if cluster_id is None and len(latest) == 1:
        return next(iter(latest.values()))
    if cluster_id is None:
        raise UsageError(f"--warehouse: it has {len(latest)} clusters; name one with --cluster-id: {known}")
    if cluster_id not in latest:
        raise UsageError(f"--cluster-id {cluster_id!r}: the warehouse has no such cluster; it has {known}")
    return latest[cluster_id]


def _readings(warehouse: Warehouse, run: Run, snapshot: ClusterSnapshot) -> StoredReadings | None:
    """The readings of the snapshot's cluster that the run has; None if there are none."""
    if ADVICE.name not in run.versions:
        return None
    cluster_id = str(snapshot.cluster_id)
    return stored_readings(warehouse, run, {cluster_id: snapshot}).get(cluster_id)


def _rows(
    warehouse: Warehouse, run: Run, table: Table, snapshot: ClusterSnapshot, columns: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """The rows of one cluster; none of a table that the run, of an older rackspan, does not have."""
    if table.name not in run.versions:
        return
    for batch in table_files(warehouse, table, run).read(("cluster_id", *columns)):
        yield from (row for row in batch.to_pylist() if row["cluster_id"] == snapshot.cluster_id)


def _advice(row: Mapping[str, Any]) -> Advice:
    return Advice(
        Concern(row["concern"]),
        row["kind"],
        row["reason"],
        row["command"],
        row["cost"],
        row["undo"],
        row["topic"],
        row["group_id"],
        row["bytes_a_month"],
        row["money_a_month"],
        row["rank"],
        row["assumption"],
    )


def _seconds_at_risk(warehouse: Warehouse, run: Run, snapshot: ClusterSnapshot) -> dict[str | None, float]:
    """Seconds by topic: those of its partition that was at risk longest; None has those of any topic and of the loss of a rack."""
    since = None if snapshot.taken_at is None else snapshot.taken_at - timedelta(days=RISK_DAYS)
    sums: dict[tuple[str | None, int | None, str | None], float] = {}
    columns = ("hour", "topic", "partition", "state", "lost_rack", "seconds")
    for row in _rows(warehouse, run, DURABILITY_TIME, snapshot, columns):
        if row["state"] not in _NOT_AT_RISK and (since is None or row["hour"] >= since):
            key = row["topic"], row["partition"], row["lost_rack"]
            sums[key] = sums.get(key, 0.0) + row["seconds"]
    worst: dict[str | None, float] = {}
    for (topic, _, _), seconds in sums.items():
        worst[topic] = max(seconds, worst.get(topic, 0.0))
        worst[None] = max(seconds, worst.get(None, 0.0))
    return worst
