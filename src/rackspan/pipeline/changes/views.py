"""SQL over tables of changes: the rows at each snapshot, as of a time, and seconds in each state. Run by Spark and by DuckDB.

Each function returns a query over two relations: the table as it is stored, and `judged`, which has the snapshots and says which of
them have all of their rows. Tests: tests/pipeline/test_notebook.py holds both engines equal to `pipeline table`.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from rackspan.pipeline.changes.at_each_snapshot import GAP_PERIODS, ONLY_SNAPSHOT_SECONDS
from rackspan.pipeline.schemas import PARTITION_DURABILITY, Table

MICROS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between engines: the quotation mark of names, and the function from a time to microseconds."""

    quote: str
    micros: str


SPARK: Final = Dialect("`", "unix_micros")
DUCKDB: Final = Dialect('"', "epoch_us")


def at_each_snapshot(table: Table, dialect: Dialect, rows: str, judged: str = "judged") -> str:
    """The rows of a table of changes at each snapshot, with the columns of `table.at_each_snapshot`."""
    return f"{_with(table, dialect, rows, judged)}\n{_select(table, dialect)}"


def as_of(table: Table, dialect: Dialect, rows: str, at: datetime, judged: str = "judged") -> str:
    """The rows at the last snapshot of each cluster until a time, unless that is too long before to say anything of it."""
    timestamp = int(at.astimezone(UTC).timestamp() * MICROS)
    micros = f"{dialect.micros}(taken_at)"
    last = f"{micros} <= {timestamp} and (next_micros is null or {timestamp} < next_micros) and {timestamp} <= {micros} + known_micros"
    return (
        f"{_with(table, dialect, rows, judged)},\nlast_visible as (select * from visible where {last})\n"
        f"{_select(table, dialect, 'last_visible')}"
    )


def durability_time(dialect: Dialect, rows: str = PARTITION_DURABILITY.name, judged: str = "judged") -> str:
    """Seconds of each partition in each state, from the first snapshot to the last; `unknown` where none was taken for too long."""
    q = dialect.quote
    lasted = f"least(next_micros - {dialect.micros}(s.taken_at), known_micros) / {MICROS}.0"
    unknown = f"greatest(next_micros - {dialect.micros}(s.taken_at) - known_micros, 0) / {MICROS}.0"
    key = f"s.cluster_id, r.topic, r.{q}partition{q}"
    joined = _joined("visible").replace("\nwhere ", "\nwhere next_micros is not null and ")
    return (
        f"{_with(PARTITION_DURABILITY, dialect, rows, judged)},\n"
        f"lasting as (select {key}, r.state, {lasted} as seconds {joined}\n"
        f"union all select {key}, 'unknown', {unknown} {joined})\n"
        f"select cluster_id, topic, {q}partition{q}, state, sum(seconds) as seconds from lasting\n"
        f"group by cluster_id, topic, {q}partition{q}, state having sum(seconds) > 0"
    )


def _with(table: Table, dialect: Dialect, rows: str, judged: str) -> str:
    """`visible`: the snapshots, each with the last whole one and how long its rows are true. `spans`: rows with the next of their key."""
    q, micros = dialect.quote, dialect.micros
    key = ", ".join(f"{q}{name}{q}" for name in table.grain[2:])
    by_time = "over (partition by cluster_id order by taken_at)"
    only = int(GAP_PERIODS * ONLY_SNAPSHOT_SECONDS * MICROS)
    return (
        f"with times as (select cluster_id, taken_at, day, snapshot_id, lead({micros}(taken_at)) {by_time} as next_micros,\n"
        f"  max(case when base_id is null then taken_at end) {by_time} as whole_at from {judged}),\n"
        f"periods as (select cluster_id, coalesce({GAP_PERIODS} * median(next_micros - {micros}(taken_at)), {only}) as known_micros\n"
        "  from times group by cluster_id),\n"
        "visible as (select times.*, known_micros from times join periods on times.cluster_id = periods.cluster_id),\n"
        "placed as (select stored.*, visible.whole_at\n"
        f"  from {rows} stored join visible on stored.cluster_id = visible.cluster_id and stored.snapshot_id = visible.snapshot_id),\n"
        f"spans as (select *, lead(valid_from) over (partition by cluster_id, whole_at, {key} order by valid_from) as valid_until\n"
        "  from placed)"
    )


def _joined(visible: str) -> str:
    return (
        f"from {visible} s join spans r on r.cluster_id = s.cluster_id and r.whole_at = s.whole_at\n"
        "  and r.valid_from <= s.taken_at and (r.valid_until is null or s.taken_at < r.valid_until)\n"
        "where r.gone is not true"
    )


def _select(table: Table, dialect: Dialect, visible: str = "visible") -> str:
    of_snapshot = ("cluster_id", "taken_at", "day", "snapshot_id")
    columns = ", ".join(
        f"{'s' if name in of_snapshot else 'r'}.{dialect.quote}{name}{dialect.quote}"
        for name in table.at_each_snapshot.schema.names
    )
    return f"select {columns}\n{_joined(visible)}"
