"""The names of clusters: the table `clusters`, a row for each name that a cluster was collected by, with the time since when.

Constraints: a name never keeps a snapshot from being stored, and a warehouse without the table is read as one without names.
Method: the rows are few and are read whole; a transaction for cluster and time makes a row that two collectors write a conflict. Bound: a row
for each change of a name, and one reading of the table by each collector. Tests: tests/pipeline/landing/test_names.py.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime

import pyarrow as pa

from rackspan.pipeline.delta.append import ConcurrentTransactionError, append
from rackspan.pipeline.delta.table import create_table, data_files, open_table, read_files
from rackspan.pipeline.landing.rows import marker_transaction
from rackspan.pipeline.schemas import CLUSTERS
from rackspan.pipeline.warehouse import Warehouse, existing_table
from rackspan.sources.source import ClusterName


def how_to_restore(warehouse: Warehouse) -> str:
    """What to do about a table that cannot be read, as the end of a message."""
    return f"if that stays so, remove {warehouse.table(CLUSTERS.name)}: the next rackspan pipeline collect stores the names again"


def has_names(warehouse: Warehouse) -> bool:
    """Whether the table is there. Errors: InvalidWarehouse where it cannot be read."""
    return open_table(warehouse.table(CLUSTERS.name)) is not None


def cluster_names(warehouse: Warehouse) -> dict[str, ClusterName]:
    """The last name of each cluster, by id. Errors: InvalidWarehouse where the table cannot be read."""
    opened = open_table(warehouse.table(CLUSTERS.name))
    if opened is None:
        return {}
    rows = [row for batch in read_files(opened, data_files(opened), CLUSTERS.schema) for row in batch.to_pylist()]
    rows.sort(key=lambda row: row["since"])
    return {row["cluster_id"]: ClusterName(row["name"], row["cluster"]) for row in rows}


def shown_names(warehouse: Warehouse) -> dict[str, str]:
    """What to call each cluster, by id: its last name, with the id where two clusters have the same. Errors: as `cluster_names`."""
    names = {cluster_id: named.name for cluster_id, named in cluster_names(warehouse).items()}
    counts = Counter(names.values())
    return {cluster_id: name if counts[name] == 1 else f"{name} ({cluster_id})" for cluster_id, name in names.items()}


class StoredNames:
    """The names that a collector has read from the warehouse, or stored there, so that only another one is written."""

    def __init__(self) -> None:
        self._known: dict[str, ClusterName] | None = None

    def store(self, warehouse: Warehouse, named: Mapping[str, tuple[ClusterName, datetime]]) -> None:
        """Store the name of each cluster, by id, that has another one since that time. Errors: InvalidWarehouse."""
        if not named:
            return
        if self._known is None:
            self._known = cluster_names(warehouse)
        new = {cluster_id: at for cluster_id, at in named.items() if self._known.get(cluster_id) != at[0]}
        if not new:
            return
        create_table(warehouse.table(CLUSTERS.name), CLUSTERS.declared, CLUSTERS.meaning, by_day=False)
        for cluster_id, (name, since) in new.items():
            row = {"cluster_id": cluster_id, "since": since.astimezone(UTC), "name": name.name, "cluster": name.cluster}
            try:
                opened = existing_table(warehouse, CLUSTERS.name)
                append(opened, pa.Table.from_pylist([row], CLUSTERS.schema), {marker_transaction(cluster_id, since): 1})
            except ConcurrentTransactionError:
                # Another collector has stored it.
                pass
            self._known[cluster_id] = name
