"""Converts snapshots to the rows of the landing tables, and rows back to a snapshot."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from rackspan.errors import InvalidSnapshot
from rackspan.model import Broker, Controller
from rackspan.model.partitions import BROKER_LISTS
from rackspan.model.snapshot import VERSION, ClusterSnapshot
from rackspan.pipeline.landing.bases import Base, SnapshotTables
from rackspan.pipeline.landing.readings import reading_rows
from rackspan.pipeline.schemas import CONTENT, GONE, LANDING, Table
from rackspan.sources.snapshot_folder import CLUSTER_SCHEMA, from_tables, to_tables
from rackspan.text import utc_text
from rackspan.traffic import ClusterReading

EARLIEST: Final = datetime(2011, 1, 1, tzinfo=UTC)
"""The year of Kafka's first release. A clock that was never set begins in 1970, and each hour since then would get rows."""
LATEST: Final = datetime(2100, 1, 1, tzinfo=UTC)

HASH_LENGTH: Final = 10
"""Hexadecimal digits of a snapshot_id's hash. It only has to distinguish snapshots of one microsecond."""


def snapshot_key(snapshot: ClusterSnapshot) -> tuple[str, datetime]:
    """Cluster and time, by which a snapshot is identified. Errors: InvalidSnapshot where either is missing, or no cluster had that time."""
    if not snapshot.cluster_id:
        raise _missing("cluster_id")
    if snapshot.taken_at is None:
        raise _missing("taken_at")
    if not EARLIEST <= snapshot.taken_at < LATEST:
        raise InvalidSnapshot(
            f"taken_at is {utc_text(snapshot.taken_at)}, outside {EARLIEST.year} to {LATEST.year - 1}: a clock was wrong; set it, and take the "
            "snapshot again"
        )
    try:
        snapshot.cluster_id.encode()
    except UnicodeEncodeError:
        raise InvalidSnapshot(
            f"cluster_id {snapshot.cluster_id[:40]!r}: half a surrogate pair is not text; take the snapshot again"
        ) from None
    return snapshot.cluster_id, snapshot.taken_at


def _missing(name: str) -> InvalidSnapshot:
    return InvalidSnapshot(
        f'{name} is missing, and a warehouse is ordered by it; add "{name}" to the snapshot, or take it again'
    )


def time_text(taken_at: datetime) -> str:
    """The time as digits that sort as times do, microseconds included: 21 characters."""
    at = taken_at.astimezone(UTC)
    day, clock = f"{at.year:04}{at.month:02}{at.day:02}", f"{at.hour:02}{at.minute:02}{at.second:02}"
    return f"{day}T{clock}{at.microsecond:06}"


def snapshot_id(snapshot: ClusterSnapshot, base_id: str | None = None) -> str:
    """The time, then a hash of the content: 32 characters, the most that statistics of data files hold of a text.

    Ids sort by time, so a reader of some snapshots skips the files of others. The snapshot that it builds on is hashed too: rows
    that a killed collector left are those of one that is stored in the same way, or have another id.
    """
    _, taken_at = snapshot_key(snapshot)
    digest = hashlib.sha256(repr(_head(snapshot)).encode(errors="surrogatepass"))
    digest.update((base_id or "").encode())
    rows = snapshot.partitions
    for column in (rows.topic, rows.partition, rows.leader, rows.size_bytes):
        digest.update(column.tobytes())
    for lists in (getattr(rows, name) for name in BROKER_LISTS):
        if lists is rows.offline_replicas and not lists.size:
            # Without offline replicas the id is the one of releases that did not know of them.
            continue
        digest.update(repr(lists.shape).encode())
        digest.update(lists.tobytes())
    return f"{time_text(taken_at)}{digest.hexdigest()[:HASH_LENGTH]}"


def members_hash(snapshot: ClusterSnapshot) -> str:
    """A hash of what audit's ClusterMembers are made of."""
    brokers = sorted(
        (broker.id, broker.rack, broker.fenced, broker.on_loopback, *_log_dirs(broker)) for broker in snapshot.brokers
    )
    controllers = [_controller(controller) for controller in snapshot.controllers]
    return hashlib.sha256(json.dumps([brokers, controllers]).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class NewSnapshot:
    """A snapshot that is to be stored: whole, or as what differs from `base`."""

    snapshot: ClusterSnapshot
    base: Base | None = None
    reading: ClusterReading | None = None
    """The reading that was taken with it."""
    known_until: datetime | None = None
    """Until when it says something; None leaves that to those who read it."""

    @cached_property
    def tables(self) -> SnapshotTables:
        """Its rows in the tables of content."""
        return content(self.snapshot)

    @cached_property
    def identity(self) -> str:
        """Its id."""
        return snapshot_id(self.snapshot, None if self.base is None else self.base.snapshot_id)

    def as_base(self) -> Base:
        """The snapshot as one that the next may build on."""
        cluster_id, taken_at = snapshot_key(self.snapshot)
        return Base(
            cluster_id,
            self.identity,
            self.base.root_id if self.base else self.identity,
            self.base.root_taken_at if self.base else taken_at,
            taken_at,
            self.snapshot.partial,
            members_hash(self.snapshot),
            self.tables,
        )


def landing_rows(snapshots: Iterable[NewSnapshot]) -> dict[str, pa.Table]:
    """The rows of snapshots for each landing table."""
    parts: dict[str, list[pa.Table]] = {name: [] for name in LANDING}
    for new in snapshots:
        of_reading = {} if new.reading is None else reading_rows(new.reading)
        stored = {**(new.tables if new.base is None else new.base.differences(new.tables)), **of_reading}
        for name, rows in stored.items():
            parts[name].append(_keyed(rows, LANDING[name], new.snapshot, new.identity))
        parts["snapshots"].append(marker_row(new.identity, new.snapshot, stored, new.base, new.known_until))
    return {name: pa.concat_tables(ones) for name, ones in parts.items() if ones}


def content(snapshot: ClusterSnapshot) -> SnapshotTables:
    """The rows of a whole snapshot by table, without its keys."""
    tables = to_tables(snapshot)
    return {name: tables[name] for name in ("brokers", "topics", "partitions")}


def marker_row(
    identity: str,
    snapshot: ClusterSnapshot,
    stored: SnapshotTables,
    base: Base | None = None,
    known_until: datetime | None = None,
) -> pa.Table:
    """The row in `snapshots` of a snapshot with these rows in the other tables."""
    return _keyed(_marker(snapshot, stored, base, known_until), LANDING["snapshots"], snapshot, identity)


def marker_transaction(cluster_id: str, taken_at: datetime) -> str:
    """The application id under which a snapshot's row in `snapshots` is committed."""
    return f"{cluster_id}@{time_text(taken_at)}"


def to_snapshot(tables: Mapping[str, pa.Table]) -> ClusterSnapshot:
    """The snapshot whose rows these are. Errors: InvalidSnapshot."""
    marker = tables["snapshots"]
    columns = (marker[name].to_pylist() for name in ("controllers", "controllers_alive"))
    controllers = [with_alive(*row) for row in zip(*columns, strict=True)]
    head = marker.select(["cluster_id", "taken_at", "partial"])
    head = head.append_column("controllers", pa.array(controllers, CLUSTER_SCHEMA.field("controllers").type))
    head = head.append_column("version", pa.array([VERSION] * len(marker)))
    return from_tables(
        {
            "cluster": head,
            **{name: without_keys(table) for name, table in tables.items() if name != "snapshots"},
        }
    )


def _marker(
    snapshot: ClusterSnapshot, stored: SnapshotTables, base: Base | None, known_until: datetime | None
) -> pa.Table:
    rows = snapshot.partitions
    longest = max(int((lists >= 0).sum(axis=1).max(initial=0)) for lists in (rows.replicas, rows.isr))
    columns = {
        "controllers": [
            [
                {"id": controller.id, "rack": controller.rack, "voter": controller.voter}
                for controller in snapshot.controllers
            ]
        ],
        "controllers_alive": [_alive(snapshot.controllers)],
        "partial": [list(snapshot.partial)],
        "topics": [len(snapshot.topics)],
        "partitions": [len(rows)],
        "longest_list": [longest],
        "members": [members_hash(snapshot)],
        "base_id": [base and base.snapshot_id],
        "root_id": [base and base.root_id],
        "unchanged": [
            base and not any(len(stored[table.name]) for table in CONTENT) and base.members == members_hash(snapshot)
        ],
        "stored_rows": [[(name, len(rows)) for name, rows in stored.items()]],
        "known_until": [known_until],
    }
    schema = LANDING["snapshots"].schema
    return pa.table({name: pa.array(values, schema.field(name).type) for name, values in columns.items()})


def _keyed(rows: pa.Table, table: Table, snapshot: ClusterSnapshot, identity: str) -> pa.Table:
    cluster_id, taken_at = snapshot_key(snapshot)
    keys = {
        "cluster_id": pa.scalar(cluster_id, pa.string()),
        "taken_at": pa.scalar(taken_at, table.schema.field("taken_at").type),
        "day": pa.scalar(taken_at.astimezone(UTC).date(), pa.date32()),
        "snapshot_id": pa.scalar(identity, pa.string()),
    }
    columns = [
        pa.repeat(keys[field.name], len(rows))
        if field.name in keys
        else rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(len(rows), field.type)
        for field in table.schema
    ]
    return pa.table(columns, schema=table.schema)


def without_keys(rows: pa.Table) -> pa.Table:
    """The rows without the columns that say which snapshot they are of."""
    keys = [name for name in ("cluster_id", "taken_at", "day", "snapshot_id", GONE) if name in rows.column_names]
    return rows.drop_columns(keys)


def _log_dirs(broker: Broker) -> list[str]:
    """State of a broker's log directories, as it is hashed: nothing if they are well, as in releases that did not read them."""
    return [
        *(["cordoned"] if broker.cordoned else []),
        *(["failed", *broker.failed_log_dirs] if broker.failed_log_dirs else []),
    ]


def _controller(controller: Controller) -> tuple[object, ...]:
    """The fields of a controller that are hashed: `alive` only where it is known, so that ids of older snapshots stay as they are."""
    known = () if controller.alive is None else (controller.alive,)
    return (controller.id, controller.rack, controller.voter, *known)


def _alive(controllers: Sequence[Controller]) -> list[bool | None] | None:
    alive = [controller.alive for controller in controllers]
    return None if all(known is None for known in alive) else alive


def with_alive(
    controllers: Sequence[dict[str, Any]] | None, alive: Sequence[bool | None] | None
) -> list[dict[str, Any]]:
    """The controllers of a row of `snapshots`, each with `alive`."""
    controllers = controllers or ()
    known = alive or [None] * len(controllers)
    return [{**controller, "alive": value} for controller, value in zip(controllers, known, strict=True)]


def _head(snapshot: ClusterSnapshot) -> Iterable[object]:
    topics: Sequence[Any] = [
        (topic.name, topic.topic_id, topic.internal, sorted(topic.config.items())) for topic in snapshot.topics
    ]
    return (
        snapshot.cluster_id,
        snapshot.partial,
        [
            (broker.id, broker.rack, broker.fenced, broker.host, broker.port, *_log_dirs(broker))
            for broker in snapshot.brokers
        ],
        [_controller(controller) for controller in snapshot.controllers],
        topics,
    )
