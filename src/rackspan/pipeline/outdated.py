"""Which rows the newest run made in another way than this one would, by its policies and by versions of tables; they are made again.

Bound: the markers of all snapshots, where something is outdated. Source: our own. Tests: tests/pipeline/test_incremental.py.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rackspan.pipeline import runs as history
from rackspan.pipeline.landing.markers import Markers, StoredSnapshot
from rackspan.pipeline.runs import Run
from rackspan.pipeline.schemas import TABLES


@dataclass(frozen=True, slots=True)
class Outdated:
    """What the newest run made in another way than this one: all rows of `tables`, and those of clusters with another policy."""

    tables: frozenset[str]
    policies_before: Mapping[str, Any]
    policies: Mapping[str, Any]
    rebuilt: frozenset[str] = frozenset()
    """Those of `tables` that are made again because they were damaged, or on request."""
    returned: frozenset[str] = frozenset()
    """Ids of snapshots that could not be judged by the last run."""

    def __bool__(self) -> bool:
        return bool(self.tables) or self.policies_before != self.policies

    def with_another_policy(self, stored: Sequence[StoredSnapshot]) -> list[StoredSnapshot]:
        """Those of the snapshots whose clusters are judged by another policy than before."""
        clusters = {
            cluster_id
            for cluster_id in {snapshot.cluster_id for snapshot in stored}
            if history.document_of(self.policies_before, cluster_id) != history.document_of(self.policies, cluster_id)
        }
        return [snapshot for snapshot in stored if snapshot.cluster_id in clusters]

    def of_table(self, name: str, again: Sequence[StoredSnapshot]) -> list[StoredSnapshot]:
        """The snapshots whose rows in a table are made again."""
        if name in self.tables:
            return list(again)
        changed = {snapshot.snapshot_id for snapshot in self.with_another_policy(again)} | self.returned
        return [snapshot for snapshot in again if snapshot.snapshot_id in changed]

    def others(self, markers: Markers, new: Sequence[StoredSnapshot]) -> list[StoredSnapshot]:
        """The snapshots that the tables have, and that are judged again."""
        if not self:
            return []
        ids = {snapshot.snapshot_id for snapshot in new}
        found = [snapshot for snapshot in markers.of_days(markers.count_by_day()) if snapshot.snapshot_id not in ids]
        return found if self.tables else self.with_another_policy(found)

    def reason(self, again: Sequence[StoredSnapshot]) -> str:
        """Why snapshots are judged again."""
        if not self:
            return "their data files are whole again"
        if self.tables and self.tables == self.rebuilt:
            return f"a rebuild of {', '.join(name for name in TABLES if name in self.tables)}"
        if self.tables:
            return f"another version of {', '.join(name for name in TABLES if name in self.tables)}"
        single = {*self.policies_before.get(history.CLUSTERS, ()), *self.policies.get(history.CLUSTERS, ())}
        clusters = sorted({snapshot.cluster_id for snapshot in again})
        return f"another policy of {', '.join(clusters)}" if single.issuperset(clusters) else "another policy"


def outdated_rows(last: Run | None, policies: Mapping[str, Any], rebuilt: Collection[str]) -> Outdated:
    """What a run with these policies makes in another way than the newest one. All rows of `rebuilt` are made again."""
    if last is None:
        return Outdated(frozenset(), policies, policies)
    same_versions = history.made_by(last.policy)
    tables = frozenset(name for name in TABLES if last.made_by.get(name) != same_versions[name])
    return Outdated(tables | set(rebuilt), last.policy, policies, frozenset(rebuilt))
