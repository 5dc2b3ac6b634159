"""SQL over tables of changes: rows at each snapshot, as of a time or now, seconds in each state, and incidents. For Spark, DuckDB, Polars.

Each function returns a query over tables as they are stored, among them `judged`, which has the snapshots and says which of
them have all of their rows. Tests: tests/pipeline/test_notebook.py holds every engine equal to `pipeline table`, and
tests/pipeline/changes/test_incidents.py to plain loops over the snapshots.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from rackspan.audit.outage import STATES as HARM
from rackspan.pipeline.changes.at_each_snapshot import refuse_without_zone
from rackspan.pipeline.schemas import (
    BROKERS,
    CLUSTERS,
    DRIFT,
    FINDINGS,
    JUDGED,
    OUTAGE_IMPACT,
    PARTITION_DURABILITY,
    SNAPSHOTS,
    Table,
)

MICROS: Final = 1_000_000
REFUSING: Final = ("offline", "under-min-isr", "under-min-racks")
"""The states in which a partition refuses `acks=all`."""
_WENT: Final = ("broker-gone", "broker-fenced")
_OF_TIME: Final = "{0}.cluster_id = c.cluster_id and {0}.taken_at = c."
"""Begins a condition: the name of a time of `changed c` is to follow."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between engines: the quotation mark of names, the microseconds of a time, and a list's first value, null if it is empty."""

    quote: str
    micros_of: str
    first_of: str

    def micros(self, time: str) -> str:
        return self.micros_of.format(time)

    def first(self, values: str) -> str:
        return self.first_of.format(values)


SPARK: Final = Dialect("`", "unix_micros({})", "get({}, 0)")
DUCKDB: Final = Dialect('"', "epoch_us({})", "{}[1]")
POLARS: Final = Dialect('"', "cast({} as bigint)", "array_get({}, 1)")


def at_each_snapshot(table: Table, dialect: Dialect, rows: str, judged: str = JUDGED.name) -> str:
    """The rows of a table of changes at each snapshot, with the columns of `table.at_each_snapshot`."""
    return f"{_with(table, dialect, rows, judged)}\n{_select(table, dialect)}"


def as_of(table: Table, dialect: Dialect, rows: str, at: datetime, judged: str = JUDGED.name) -> str:
    """The rows at the last snapshot of each cluster until a time, unless that is after its `known_until`.

    Errors: UsageError for a time without a zone.
    """
    refuse_without_zone(at)
    timestamp = int(at.astimezone(UTC).timestamp() * MICROS)
    micros = dialect.micros("taken_at")
    last = f"{micros} <= {timestamp} and (next_micros is null or {timestamp} < next_micros) and {timestamp} <= known_micros"
    return (
        f"{_with(table, dialect, rows, judged)},\nlast_visible as (select * from visible where {last})\n"
        f"{_select(table, dialect, 'last_visible')}"
    )


def current_findings(dialect: Dialect, findings: str = FINDINGS.name, judged: str = JUDGED.name) -> str:
    """What `rackspan audit` finds in the newest snapshot of each cluster, however old that is: `taken_at` says it."""
    return f"{_newest(FINDINGS, dialect, findings, judged)}\n{_select(FINDINGS, dialect, 'newest')}"


def risk_by_topic(dialect: Dialect, outage_impact: str = OUTAGE_IMPACT.name, judged: str = JUDGED.name) -> str:
    """A row for each topic that the loss of one rack would harm, or that is harmed already, at the newest snapshot of its cluster.

    `racks`: those whose loss leaves partitions harmed. The other counts are partitions after the worst of these losses, each count by
    itself; `harmed_already`: whether some are harmed without a loss, which then count after every loss.
    """
    worst = ", ".join(f"max({name}) as {name}" for name in HARM)
    return (
        f"{_newest_impact(dialect, outage_impact, judged)}\n"
        f"select cluster_id, taken_at, topic, count(rack) as racks, {worst}, count(*) > count(rack) as harmed_already from impact\n"
        "where topic is not null group by cluster_id, taken_at, topic"
    )


def racks_survived(dialect: Dialect, outage_impact: str = OUTAGE_IMPACT.name, judged: str = JUDGED.name) -> str:
    """A row for each cluster at its newest snapshot: how many racks it has, and the loss of how many of them, one alone, it survives."""
    return (
        f"{_newest_impact(dialect, outage_impact, judged)}\n"
        "select cluster_id, taken_at, count(rack) as racks,\n"
        "  count(case when rack is not null and survived then 1 end) as racks_survived from impact\n"
        "where topic is null group by cluster_id, taken_at"
    )


def durability_time(dialect: Dialect, rows: str = PARTITION_DURABILITY.name, judged: str = JUDGED.name) -> str:
    """Seconds of each partition in each state, from the first snapshot to the last; `unknown` after the `known_until` of one."""
    q = dialect.quote
    lasted = f"(least(next_micros, known_micros) - {dialect.micros('s.taken_at')}) / {MICROS}.0"
    unknown = f"greatest(next_micros - known_micros, 0) / {MICROS}.0"
    key = f"s.cluster_id, r.topic, r.{q}partition{q}"
    joined = _joined("visible").replace("\nwhere ", "\nwhere next_micros is not null and ")
    return (
        f"{_with(PARTITION_DURABILITY, dialect, rows, judged)},\n"
        f"lasting as (select {key}, r.state, {lasted} as seconds {joined}\n"
        f"union all select {key}, 'unknown', {unknown} {joined})\n"
        f"select cluster_id, topic, {q}partition{q}, state, sum(seconds) as seconds from lasting\n"
        f"group by cluster_id, topic, {q}partition{q}, state having sum(seconds) > 0"
    )


def incidents(
    dialect: Dialect,
    drift: str = DRIFT.name,
    outage_impact: str = OUTAGE_IMPACT.name,
    brokers: str = BROKERS.name,
    snapshots: str = SNAPSHOTS.name,
    judged: str = JUDGED.name,
) -> str:
    """A row for each rack that was lost: what `outage_impact` foretold at the snapshot before, beside what was observed.

    A rack is lost where it had brokers neither gone nor fenced, has none any more, and `drift` saw one of them go. Snapshots at which
    partitions went offline or under a minimum without that have a row too, with no `lost_rack`; foretold is then what was harmed before.
    Columns: `foretold_…` and `observed_…` count all harmed partitions of the cluster, of before the loss too; `went_…` those that drift
    saw getting worse to that state; `lost_brokers` all brokers that went, `lost_racks` all racks lost at the same snapshot.
    """
    went = {state: f"went_{state.replace('-', '_')}" for state in REFUSING}
    counted = ", ".join(
        f"count(case when change = 'safety-lost' and {dialect.quote}after{dialect.quote} = '{state}' then 1 end) as {name}"
        for state, name in went.items()
    )
    harmed = " + ".join(went.values())
    snapshot = "cluster_id, taken_at, previous_taken_at, snapshot_id"
    own = ", ".join(f"c.{name}" for name in snapshot.split(", "))
    foretold, observed = (
        ", ".join(f"{side}.{name} as {side}_{name}" for name in HARM) for side in ("foretold", "observed")
    )
    columns = f"lost_brokers, {foretold}, {observed}, {', '.join(went.values())}"
    observed_then = f"join impact observed on {_OF_TIME.format('observed')}taken_at and observed.rack is null"
    return (
        f"{_with(OUTAGE_IMPACT, dialect, outage_impact, judged)},\n"
        f"changed as (select {snapshot}, count(case when change in {_WENT} then 1 end) as lost_brokers, {counted}\n"
        f"  from {drift} where change in {('safety-lost', *_WENT)} group by {snapshot}),\n"
        "compared as (select cluster_id, previous_taken_at as taken_at from changed union select cluster_id, taken_at from changed),\n"
        f"{_brokers_in_racks(brokers, snapshots)},\n"
        f"{_lost_racks(dialect, drift)}\n"
        f"select {own}, lost.rack as lost_rack, lost.together as lost_racks, {columns} from changed c\n"
        f"join lost_racks lost on {_OF_TIME.format('lost')}taken_at\n"
        f"join impact foretold on {_OF_TIME.format('foretold')}previous_taken_at and foretold.rack = lost.rack\n"
        f"{observed_then}\n"
        f"union all select {own}, null, 0, {columns} from changed c\n"
        f"left join lost_racks lost on {_OF_TIME.format('lost')}taken_at\n"
        f"join impact foretold on {_OF_TIME.format('foretold')}previous_taken_at and foretold.rack is null\n"
        f"{observed_then}\n"
        f"where lost.together is null and {harmed} > 0"
    )


def with_names(query: str, clusters: str | None = CLUSTERS.name) -> str:
    """A query whose rows have `cluster_id`, with `cluster`: the last name of the cluster, null where it has none. None: there is no such table."""
    if clusters is None:
        return f"select q.*, cast(null as string) as cluster from ({query}) q"
    newest = f"select *, row_number() over (partition by cluster_id order by since desc) as age from {clusters}"
    return (
        f"select q.*, n.name as cluster from ({query}) q\n"
        f"left join (select cluster_id, name from ({newest}) aged where age = 1) n on n.cluster_id = q.cluster_id"
    )


def _lost_racks(dialect: Dialect, drift: str) -> str:
    """`impact`: what was foretold at each snapshot of `compared`. `lost_racks`: the racks that were lost at each of `changed`."""
    return (
        "lost as (select c.cluster_id, c.taken_at, b.rack from changed c\n"
        f"  join in_racks b on {_OF_TIME.format('b')}previous_taken_at\n"
        f"  left join in_racks still on {_OF_TIME.format('still')}taken_at and still.rack = b.rack\n"
        f"  left join (select * from {drift} where change in {_WENT}) went on {_OF_TIME.format('went')}taken_at and went.broker = b.id\n"
        "  group by c.cluster_id, c.taken_at, b.rack having count(still.id) = 0 and count(went.broker) > 0),\n"
        "then_visible as (select visible.* from visible join compared c\n"
        f"  on {_OF_TIME.format('visible')}taken_at),\n"
        f"impact as (select s.cluster_id, s.taken_at, {dialect.first('r.lost_racks')} as rack, {', '.join(f'r.{name}' for name in HARM)}\n"
        f"  {_joined('then_visible')} and r.topic is null),\n"
        # A name that outage_impact has no loss of is none that the policy gives.
        "lost_racks as (select lost.*, count(*) over (partition by lost.cluster_id, lost.taken_at) as together\n"
        f"  from lost join changed c on {_OF_TIME.format('lost')}taken_at\n"
        f"  join impact f on {_OF_TIME.format('f')}previous_taken_at and f.rack = lost.rack)"
    )


def _brokers_in_racks(brokers: str, snapshots: str) -> str:
    """`in_racks`: the brokers that were up at each snapshot of `compared`, in the rack that counts, whichever it is by the policy.

    A broker's row is the last one among those of the snapshots that one builds on. Where a collector's commit came through though it was
    reported as failed, nothing builds on that snapshot, and its rows are its own.
    """
    return (
        "marked as (select m.cluster_id, m.taken_at, m.snapshot_id, coalesce(m.root_id, m.snapshot_id) as root_id, bases.base_id as built_on\n"
        f"  from {snapshots} m left join (select distinct base_id from {snapshots}) bases on bases.base_id = m.snapshot_id),\n"
        "listed as (select m.cluster_id, m.taken_at, b.id, b.rack, b.fenced, b.gone,\n"
        "  row_number() over (partition by m.snapshot_id, b.id order by stored.taken_at desc) as age\n"
        "  from marked m join compared on compared.cluster_id = m.cluster_id and compared.taken_at = m.taken_at\n"
        "  join marked stored on stored.root_id = m.root_id and stored.taken_at <= m.taken_at\n"
        f"  join {brokers} b on b.snapshot_id = stored.snapshot_id\n"
        "  where stored.snapshot_id = m.snapshot_id or stored.built_on is not null),\n"
        "up as (select cluster_id, taken_at, id, rack from listed where age = 1 and not fenced and not coalesce(gone, false)),\n"
        # Brokers without a rack count in one without a name, in one of their own, or in none.
        "in_racks as (select * from up where rack is not null\n"
        "  union all select cluster_id, taken_at, id, '' as rack from up where rack is null\n"
        "  union all select cluster_id, taken_at, id, concat('(broker ', cast(id as string), ')') as rack from up where rack is null)"
    )


def _with(table: Table, dialect: Dialect, rows: str, judged: str) -> str:
    """`visible`: the snapshots, each with the last whole one and until when its rows are true. `spans`: rows with the next of their key."""
    q, micros = dialect.quote, dialect.micros("taken_at")
    key = ", ".join(f"{q}{name}{q}" for name in table.grain[2:])
    by_time = "over (partition by cluster_id order by taken_at)"
    return (
        f"with visible as (select cluster_id, taken_at, day, snapshot_id, lead({micros}) {by_time} as next_micros,\n"
        # Before the first run of this release nothing is known of older snapshots.
        f"  coalesce({dialect.micros('known_until')}, {micros}) as known_micros,\n"
        f"  max(case when base_id is null then taken_at end) {by_time} as whole_at from {judged}),\n"
        "placed as (select stored.*, visible.whole_at\n"
        f"  from {rows} stored join visible on stored.cluster_id = visible.cluster_id and stored.snapshot_id = visible.snapshot_id),\n"
        f"spans as (select *, lead(valid_from) over (partition by cluster_id, whole_at, {key} order by valid_from) as valid_until\n"
        "  from placed)"
    )


def _newest(table: Table, dialect: Dialect, rows: str, judged: str) -> str:
    return f"{_with(table, dialect, rows, judged)},\nnewest as (select * from visible where next_micros is null)"


def _newest_impact(dialect: Dialect, outage_impact: str, judged: str) -> str:
    """`impact`: each loss at the newest snapshot of each cluster; `rack` is null where nothing is lost."""
    columns = ", ".join(f"r.{name}" for name in ("topic", *HARM, "survived"))
    return (
        f"{_newest(OUTAGE_IMPACT, dialect, outage_impact, judged)},\n"
        f"impact as (select s.cluster_id, s.taken_at, {dialect.first('r.lost_racks')} as rack, {columns}\n  {_joined('newest')})"
    )


def _joined(visible: str) -> str:
    return (
        f"from {visible} s join spans r on r.cluster_id = s.cluster_id and r.whole_at = s.whole_at\n"
        "  and r.valid_from <= s.taken_at and (r.valid_until is null or s.taken_at < r.valid_until)\n"
        "where not coalesce(r.gone, false)"
    )


def _select(table: Table, dialect: Dialect, visible: str = "visible") -> str:
    of_snapshot = ("cluster_id", "taken_at", "day", "snapshot_id")
    columns = ", ".join(
        f"{'s' if name in of_snapshot else 'r'}.{dialect.quote}{name}{dialect.quote}"
        for name in table.at_each_snapshot.schema.names
    )
    return f"select {columns}\n{_joined(visible)}"
