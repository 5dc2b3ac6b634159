"""partition_durability and outage_impact in DuckDB and in Polars, as sums that must be ours: the best query known of each.

Both are given the racks of the brokers, once: the benchmark's clusters keep theirs. As in rackspan a partition is
judged by ISR, leader and minimums; no list is unnested. partition_durability has all of its columns; outage_impact has less than
rackspan makes: no leader surge, no quorum, no row for the whole cluster.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import duckdb
import polars as pl

from benchmarks._fleet import BROKERS, MIN_INSYNC_RACKS, RACKS, REPLICATION_FACTOR

Sums: TypeAlias = dict[str, int]
"""Rows, and partitions in each state; by loss for outage_impact."""

RACK_OF = {broker: f"r{broker % RACKS}" for broker in range(BROKERS)}
RUN_ID = "0000000001-benchmark"
MEMORY_MAX = "10GB"
"""Of DuckDB, which takes four fifths of the machine's otherwise: Spark is there too. What it cannot hold goes to files beside its output."""

STATES = ("offline", "under-min-isr", "under-min-racks", "one-rack")


def duckdb_durability(folder: Path, out: Path) -> None:
    """Racks as bits, looked up by broker; their names from an array of all sets of racks. A third of the time of list functions."""
    names = [", ".join(f"'r{rack}'" for rack in range(RACKS) if held >> rack & 1) for held in range(1 << RACKS)]
    sets = ", ".join(f"[{one}]" for one in names)
    _duckdb(
        folder,
        out,
        f"""
        select cluster_id, taken_at, snapshot_id, topic, partition, internal, leader, replication_factor, isr_size,
          ([{sets}])[replica_bits + 1] as replica_racks, ([{sets}])[isr_bits + 1] as isr_racks,
          bit_count(replica_bits) as replica_rack_count, bit_count(isr_bits) as isr_rack_count,
          min_isr, {MIN_INSYNC_RACKS} as min_insync_racks, size_bytes, '{RUN_ID}' as run_id, 2 as schema_version,
          case when leader < 0 then 'offline' when isr_size < least(min_isr, replication_factor) then 'under-min-isr'
            when bit_count(isr_bits) < {MIN_INSYNC_RACKS} then 'under-min-racks'
            when bit_count(isr_bits) < 2 then 'one-rack' else 'ok' end as state
        from (select *, len(replicas) as replication_factor, len(isr) as isr_size,
            {_looked_up("replicas", " | ", 1)} as replica_bits, {_looked_up("isr", " | ", 1)} as isr_bits
          from required order by cluster_id, taken_at, topic, partition)""",
    )


def duckdb_outage(folder: Path, out: Path) -> None:
    """One scan: partitions that are alike are counted first, then each loss from the in-sync replicas in each rack.

    These are bytes of one number, looked up by broker. A sixteenth of the time of four scans, a sixth of one with list functions.
    """
    in_rack = ", ".join(f"(packed >> {8 * rack}) & 255 as in_r{rack}" for rack in range(RACKS))
    racks = " + ".join(f"(in_r{rack} > 0)::int" for rack in range(RACKS))
    sums = ", ".join(_duckdb_sums(rack) for rack in (None, *range(RACKS)))
    structs = ", ".join(
        f"{{'lost_rack': {'null' if rack is None else repr(f'r{rack}')}, 'offline': offline_{rack}, "
        f"'under_min_isr': isr_{rack}, 'under_min_racks': racks_{rack}}}"
        for rack in (None, *range(RACKS))
    )
    _duckdb(
        folder,
        out,
        f"""
        select cluster_id, taken_at, topic, loss.lost_rack, loss.offline, loss.under_min_isr, loss.under_min_racks
        from (select cluster_id, taken_at, topic, unnest([{structs}]) as loss
          from (select cluster_id, taken_at, topic, {sums}
            from (select *, {racks} as distinct_racks
              from (select *, {in_rack}
                from (select cluster_id, taken_at, topic, leader < 0 as leaderless, len(isr) as in_sync,
                    least(min_isr, len(replicas)) as held_to, {_looked_up("isr", " + ", 8)} as packed, count(*) as alike
                  from required group by all)))
            group by all))
        where loss.offline + loss.under_min_isr + loss.under_min_racks > 0 order by all""",
    )


def _duckdb_sums(rack: int | None) -> str:
    left = "in_sync" if rack is None else f"in_sync - in_r{rack}"
    racks = "distinct_racks" if rack is None else f"distinct_racks - (in_r{rack} > 0)::int"
    states = {
        "offline": f"leaderless or {left} = 0",
        "isr": f"not leaderless and {left} between 1 and held_to - 1",
        "racks": f"not leaderless and {left} > 0 and {racks} < {MIN_INSYNC_RACKS}",
    }
    return ", ".join(f"coalesce(sum(alike) filter ({holds}), 0) as {state}_{rack}" for state, holds in states.items())


def _looked_up(brokers: str, operator: str, width: int) -> str:
    """A number with `width` bits for each rack, from the racks of the brokers in a list of at most REPLICATION_FACTOR."""
    by_broker = [1 << width * (broker % RACKS) for broker in range(BROKERS)]
    return operator.join(
        f"coalesce(({by_broker})[{brokers}[{place + 1}] + 1], 0)" for place in range(REPLICATION_FACTOR)
    )


def _duckdb(folder: Path, out: Path, query: str) -> None:
    partitions, topics = (f"{folder}/tables/{name}/*/*.parquet" for name in ("partitions", "topics"))
    with duckdb.connect() as connection:
        connection.execute("set enable_progress_bar = false")
        connection.execute(f"set memory_limit = '{MEMORY_MAX}'")
        connection.execute(f"set temp_directory = '{out}.spilled'")
        connection.execute(f"""create view required as select p.*, t.min_isr, t.internal
          from read_parquet('{partitions}') p
          join (select cluster_id, taken_at, name, coalesce(internal, false) as internal, cast(config['min.insync.replicas'] as int) as min_isr
            from read_parquet('{topics}')) t
          on p.cluster_id = t.cluster_id and p.taken_at = t.taken_at and p.topic = t.name""")
        connection.execute(f"copy ({query}) to '{out}' (format parquet, compression zstd)")


def polars_durability(folder: Path, out: Path) -> None:
    isr_racks = _racks("isr")
    judged = _with_minimum(folder).select(
        "cluster_id",
        "taken_at",
        "snapshot_id",
        "topic",
        "partition",
        "internal",
        "leader",
        pl.col("replicas").list.len().alias("replication_factor"),
        pl.col("isr").list.len().alias("isr_size"),
        _racks("replicas").alias("replica_racks"),
        isr_racks.alias("isr_racks"),
        _racks("replicas").list.len().alias("replica_rack_count"),
        isr_racks.list.len().alias("isr_rack_count"),
        "min_isr",
        pl.lit(MIN_INSYNC_RACKS).alias("min_insync_racks"),
        "size_bytes",
        pl.lit(RUN_ID).alias("run_id"),
        pl.lit(2).alias("schema_version"),
        pl.when(pl.col("leader") < 0)
        .then(pl.lit("offline"))
        .when(pl.col("isr").list.len() < _held_to())
        .then(pl.lit("under-min-isr"))
        .when(isr_racks.list.len() < MIN_INSYNC_RACKS)
        .then(pl.lit("under-min-racks"))
        .when(isr_racks.list.len() < 2)
        .then(pl.lit("one-rack"))
        .otherwise(pl.lit("ok"))
        .alias("state"),
    )
    judged.sort("cluster_id", "taken_at", "topic", "partition").collect().write_parquet(out, compression="zstd")


def polars_outage(folder: Path, out: Path) -> None:
    losses = [_polars_loss(_with_minimum(folder), rack) for rack in (None, *range(RACKS))]
    harmed = pl.concat(losses).filter(pl.sum_horizontal("offline", "under_min_isr", "under_min_racks") > 0)
    harmed.sort("cluster_id", "taken_at", "lost_rack", "topic").collect().write_parquet(out, compression="zstd")


def _polars_loss(required: pl.LazyFrame, rack: int | None) -> pl.LazyFrame:
    lost = [broker for broker, name in RACK_OF.items() if name == f"r{rack}"]
    alive = pl.col("isr").list.eval(pl.element().filter(~pl.element().is_in(lost)))
    online = (pl.col("leader") >= 0) & (pl.col("alive").list.len() > 0)
    return (
        required.with_columns(alive.alias("alive"))
        .group_by("cluster_id", "taken_at", "topic")
        .agg(
            (~online).sum().alias("offline"),
            (online & (pl.col("alive").list.len() < _held_to())).sum().alias("under_min_isr"),
            (online & (_racks("alive").list.len() < MIN_INSYNC_RACKS)).sum().alias("under_min_racks"),
        )
        .with_columns(pl.lit(None if rack is None else f"r{rack}", pl.String).alias("lost_rack"))
    )


def _held_to() -> pl.Expr:
    """min.insync.replicas as brokers count it."""
    return pl.min_horizontal("min_isr", pl.col("replicas").list.len())


def _racks(column: str) -> pl.Expr:
    brokers, racks = list(RACK_OF), list(RACK_OF.values())
    named = pl.element().replace_strict(brokers, racks, return_dtype=pl.String)
    return pl.col(column).list.eval(named).list.unique().list.sort()


def _with_minimum(folder: Path) -> pl.LazyFrame:
    partitions, topics = (
        pl.scan_parquet(f"{folder}/tables/{name}/*/*.parquet", hive_partitioning=False)
        for name in ("partitions", "topics")
    )
    minimum = pl.col("config").map.get("min.insync.replicas").cast(pl.Int32)
    internal = pl.col("internal").fill_null(value=False)
    required = topics.select(
        "cluster_id", "taken_at", pl.col("name").alias("topic"), minimum.alias("min_isr"), internal
    )
    return partitions.join(required, on=["cluster_id", "taken_at", "topic"])


PEERS: Mapping[str, Mapping[str, Callable[[Path, Path], None]]] = {
    "DuckDB": {"partition_durability": duckdb_durability, "outage_impact": duckdb_outage},
    "Polars": {"partition_durability": polars_durability, "outage_impact": polars_outage},
}


def both(engine: str, folder: Path, out: Path) -> None:
    """Make both tables, one after another, as NAME.parquet."""
    out.mkdir()
    for name, make in PEERS[engine].items():
        make(folder, out / f"{name}.parquet")
