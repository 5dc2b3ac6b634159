"""The effect of each loss in Spark's own columns: the sums of frames/outage.py without Python workers.

Losses are bits as racks are (broker_bits.py), so that one number holds the losses under which a condition is true for a
partition. A loss is one rack, so a list of brokers survives every loss except that of a rack that holds all of them.
Partitions that no loss harms, nearly all, are counted by the broker that takes over their leadership; others also by topic.
"""

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rackspan.audit.json_format import STATES
from rackspan.model.ids import NO_BROKER
from rackspan.pipeline.frames.bits.broker_bits import ALIVE, EVERY_LOSS, RACKS, BrokerBits, any_of, how_many, number

MOVES = ("first", "second")
"""A leadership moves to the first replica that can lead, or, where that one is lost too, to the first one elsewhere."""


def partial_harm_bits(partitions_with_requirements: DataFrame, losses: DataFrame, bits: BrokerBits) -> DataFrame:
    """As frames/outage.py, summed over equal partitions. Grain: several rows a snapshot, loss, topic, broker."""
    candidates = _with_candidates(_numbered(partitions_with_requirements, bits), bits.width)
    moved = _moved(_harmed(candidates), bits.width)
    return _by_loss(_counted(moved), losses)


def _numbered(partitions_with_requirements: DataFrame, bits: BrokerBits) -> DataFrame:
    """Each broker of a partition as bits, a column for each place in its lists. Grain: snapshot, topic, partition."""
    lists = {
        "replica": bits.entries("replicas"),
        "alive": bits.alive("replicas"),
        "in_sync": bits.alive("isr"),
    }
    return partitions_with_requirements.select(
        "snapshot",
        "topic",
        "internal",
        (F.col("leader") == NO_BROKER).alias("leaderless"),
        bits.alive_one("leader").alias("leader_alive"),
        bits.without_quorum.alias("undecided"),
        F.least("min_insync_replicas", F.size("replicas")).cast("int").alias("held_to"),
        "min_insync_racks",
        "isr",
        *(one.alias(f"{name}_{place}") for name, ones in lists.items() for place, one in enumerate(ones)),
    )


def _with_candidates(numbered: DataFrame, width: int) -> DataFrame:
    """The live brokers of a partition, those that can lead it, and the losses that leave none. Grain: as `numbered`."""
    replicas, alive, isr = (
        [F.col(f"{name}_{place}") for place in range(width)] for name in ("replica", "alive", "in_sync")
    )
    spare = how_many(bits != 0 for bits in isr) - F.col("held_to")
    return numbered.withColumns(
        {
            "isr_racks": any_of(isr).bitwiseAND(number(RACKS)),
            "none_in_sync": _none_left(isr),
            "none_alive": _none_left(alive),
            "short": _short(isr, spare),
            **{
                f"can_lead_{place}": (lives != 0) & F.coalesce(F.array_contains("isr", replica), F.lit(False))
                for place, (lives, replica) in enumerate(zip(alive, replicas, strict=True))
            },
        }
    )


def _none_left(alive: list[Column]) -> Column:
    """The losses that leave no broker of a list alive."""
    racks = any_of(alive).bitwiseAND(number(RACKS))
    elsewhere = reduce(lambda one, other: one | other, (one == ALIVE for one in alive))
    return (
        F.when(any_of(alive) == 0, number(EVERY_LOSS))
        .when(~elsewhere & (F.bit_count(racks) == 1), racks)
        .otherwise(number(0))
    )


def _short(isr: list[Column], spare: Column) -> Column:
    """The losses that leave too few in sync: those of racks with more than `spare` in-sync replicas."""
    # At place k the racks that at least k + 1 of those counted so far are in.
    held = [number(0)] * len(isr)
    for one in isr:
        held = [
            at.bitwiseOR(one if before is None else before.bitwiseAND(one))
            for before, at in zip([None, *held], held, strict=False)
        ]
    by_spare = F.when(spare < 0, number(EVERY_LOSS))
    for place, racks in enumerate(held):
        by_spare = by_spare.when(spare == place, racks.bitwiseAND(number(RACKS)))
    return by_spare.otherwise(number(0))


def _harmed(candidates: DataFrame) -> DataFrame:
    """Each state as the losses under which it holds. Grain: as `candidates`."""
    dead = F.when(F.col("leader_alive") == 0, number(EVERY_LOSS)).otherwise(
        F.col("leader_alive").bitwiseAND(number(RACKS))
    )
    # Without a majority of controllers a dead leader is not replaced; a live one continues.
    decided = F.col("none_in_sync").bitwiseAND(F.bitwise_not("undecided"))
    offline = F.when(F.col("leaderless"), number(EVERY_LOSS)).otherwise(
        decided.bitwiseOR(F.col("dead").bitwiseAND(F.col("undecided")))
    )
    racks = F.bit_count("isr_racks")
    few_racks = (
        F.when(F.col("min_insync_racks") <= 1, number(0))
        .when(racks < F.col("min_insync_racks"), number(EVERY_LOSS))
        .when(racks == F.col("min_insync_racks"), F.col("isr_racks"))
        .otherwise(number(0))
    )
    online = F.bitwise_not("offline")
    return (
        candidates.withColumn("dead", dead)
        .withColumn("offline", offline)
        .withColumns(
            {
                "needs_unclean_election": F.col("offline")
                .bitwiseAND(F.col("none_in_sync"))
                .bitwiseAND(F.bitwise_not("none_alive")),
                "under_min_isr": F.col("short").bitwiseAND(online),
                "under_min_racks": few_racks.bitwiseAND(online),
                "moving": F.col("dead").bitwiseAND(online),
            }
        )
    )


def _moved(harmed: DataFrame, width: int) -> DataFrame:
    """The broker that takes over the leadership: `first` after the losses `under_first`, and so on. Grain: as `harmed`."""
    can_lead, alive, replicas = (
        [F.col(f"{name}_{place}") for place in range(width)] for name in ("can_lead", "alive", "replica")
    )
    first = [F.when(can, to) for can, to in zip(can_lead, replicas, strict=True)]
    first_alive = [F.when(can, one) for can, one in zip(can_lead, alive, strict=True)]
    chosen = harmed.withColumns({"first": F.coalesce(*first), "first_alive": F.coalesce(*first_alive, number(0))})
    elsewhere = [F.when(one != F.col("first_alive"), to) for one, to in zip(alive, first, strict=True)]
    racks = F.col("first_alive").bitwiseAND(number(RACKS))
    return chosen.withColumns(
        {
            "second": F.coalesce(*elsewhere),
            "under_first": F.col("moving").bitwiseAND(F.bitwise_not(racks)),
            "under_second": F.col("moving").bitwiseAND(racks),
        }
    )


def _counted(moved: DataFrame) -> DataFrame:
    """The number of partitions that are equal in every loss, as `partitions`. The topic is null where no loss harms."""
    harmed = any_of(F.col(state) for state in STATES) != 0
    alike = moved.select(
        "snapshot",
        F.when(harmed, F.col("topic")).alias("topic"),
        F.when(harmed, F.col("internal")).alias("internal"),
        *STATES,
        *(column for move in MOVES for column in _only_if_used(move)),
    )
    return alike.groupBy(*alike.columns).agg(F.count("*").alias("partitions"))


def _only_if_used(move: str) -> Iterable[Column]:
    # Otherwise partitions would be grouped by columns that have no effect.
    used = (F.col(f"under_{move}") != 0) & F.col(move).isNotNull()
    yield F.when(used, F.col(move)).alias(move)
    yield F.when(used, F.col(f"under_{move}")).otherwise(number(0)).alias(f"under_{move}")


def _by_loss(counted: DataFrame, losses: DataFrame) -> DataFrame:
    """Each loss of a snapshot with its partitions; harm and leaderships in separate rows."""
    bit = F.when(F.col("loss") == 0, number(ALIVE)).otherwise(F.expr("shiftleft(1L, loss - 1)"))
    under = counted.join(losses.select("snapshot", "loss", bit.alias("bit")), "snapshot")
    rows = F.array(_harm(), *(_surge(move) for move in MOVES))
    return under.select("snapshot", "loss", F.inline(rows)).where("topic IS NOT NULL OR broker IS NOT NULL")


def _harm() -> Column:
    counts = (F.when(_under(state), F.col("partitions")).otherwise(number(0)).alias(state) for state in STATES)
    rest = (F.lit(None).cast("int").alias("broker"), F.lit(None).cast("bigint").alias("leaders"))
    anything = _under("offline") | _under("under_min_isr") | _under("under_min_racks")
    return F.when(anything, F.struct("topic", "internal", *counts, *rest))


def _surge(move: str) -> Column:
    nothing = (F.lit(None).cast("bigint").alias(state) for state in STATES)
    topic = (F.lit(None).cast("string").alias("topic"), F.lit(None).cast("boolean").alias("internal"))
    gained = (F.col(move).alias("broker"), F.col("partitions").alias("leaders"))
    return F.when(_under(f"under_{move}"), F.struct(*topic, *nothing, *gained))


def _under(losses: str) -> Column:
    return F.col(losses).bitwiseAND(F.col("bit")) != 0
