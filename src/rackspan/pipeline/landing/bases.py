"""Decides whether a snapshot is stored whole or as what differs from the one before it, which a collector keeps in memory.

Constraints: whatever a snapshot builds on is stored, of the same cluster and UTC day, and its bases end at a whole snapshot at most an
hour older; so a day can be read and dropped by itself, and a damaged file costs at most the snapshots up to the next whole one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

import pyarrow as pa

from rackspan.model import ClusterSnapshot
from rackspan.pipeline.changes.difference import changes

SnapshotTables: TypeAlias = Mapping[str, pa.Table]
"""The rows of a snapshot in brokers, topics and partitions, without its keys."""

GRAINS: Final[Mapping[str, tuple[str, ...]]] = {
    "brokers": ("id",),
    "topics": ("name",),
    "partitions": ("topic", "partition"),
}
VOLATILE: Final = ("size_bytes", "usable_bytes")
"""Columns that differ in every snapshot of a busy cluster: another value alone is no change."""

WHOLE_EVERY: Final = timedelta(hours=1)
"""A snapshot is stored whole at least so often: reading one takes the last whole one and all changes since."""


@dataclass(frozen=True, slots=True)
class Base:
    """A stored snapshot that the next one of its cluster may build on. `members` is its hash of brokers and controllers."""

    cluster_id: str
    snapshot_id: str
    root_id: str
    root_taken_at: datetime
    taken_at: datetime
    partial: tuple[str, ...]
    members: str
    tables: SnapshotTables

    def serves(self, snapshot: ClusterSnapshot) -> bool:
        """Whether a snapshot of the same cluster may build on it."""
        at = snapshot.taken_at
        return (
            at is not None
            and self.taken_at < at < self.root_taken_at + WHOLE_EVERY
            and at.astimezone(UTC).date() == self.taken_at.astimezone(UTC).date()
            and snapshot.partial == self.partial
        )

    def differences(self, tables: SnapshotTables) -> SnapshotTables:
        """What differs in these rows of a later snapshot."""
        return {name: changes(self.tables[name], rows, GRAINS[name], VOLATILE) for name, rows in tables.items()}


@dataclass(slots=True)
class Bases:
    """The newest snapshot that a collector has stored of each cluster. Another process starts with none, so with whole ones."""

    newest: dict[str, Base] = field(default_factory=dict)

    def add(self, base: Base) -> None:
        """Let the next snapshot of a cluster build on this one, unless a later one is known."""
        known = self.newest.get(base.cluster_id)
        if known is None or known.taken_at < base.taken_at:
            self.newest[base.cluster_id] = base

    def base_of(self, snapshot: ClusterSnapshot) -> Base | None:
        """What a snapshot builds on; None where it is stored whole."""
        base = self.newest.get(snapshot.cluster_id or "")
        return base if base is not None and base.serves(snapshot) else None
