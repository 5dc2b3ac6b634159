"""Parts of reasons and remedies: brokers by rack, lists of ids."""

from collections.abc import Iterable, Sequence
from typing import Final

from rackspan.audit.batch import ClusterMembers, PartitionBatch
from rackspan.model import shown
from rackspan.text import noun_and_ids

PARTITIONS_NAMED: Final = 10


def by_rack(batch: PartitionBatch, row: int) -> str:
    """`r1: 1,4; r2: 2`, the fullest rack first."""
    return held_by_rack(batch, staying(batch, row))


def held_by_rack(batch: PartitionBatch, brokers: Sequence[int]) -> str:
    """`r1: 1,4; r2: 2`, the fullest rack first; `nobody` for no broker."""
    rack_of = batch.members.rack_map.rack_of
    held: dict[str, list[int]] = {}
    for broker in brokers:
        held.setdefault(shown(rack_of[broker]) if broker in rack_of else "rack unknown", []).append(broker)
    fullest_first = sorted(held.items(), key=lambda item: (-len(item[1]), item[0]))
    return "; ".join(f"{rack}: {listed(ids)}" for rack, ids in fullest_first) or "no broker"


def listed(items: Iterable[object]) -> str:
    """`1,4`, or `none`."""
    return ",".join(map(str, items)) or "none"


def broker_list(ids: Sequence[int]) -> str:
    """`broker 1`, or `brokers 1,4`."""
    return noun_and_ids("broker", ids)


def down_list(members: ClusterMembers, ids: Sequence[int], noun: str = "broker") -> str:
    """`brokers 1,4`, or `rack b and broker 1` where all of rack b is down: brokers, or what `noun` says, to bring back."""
    racks = sorted({members.down_with_rack[member] for member in ids if member in members.down_with_rack})
    others = [member for member in ids if member not in members.down_with_rack]
    return " and ".join([*(f"rack {rack}" for rack in racks), *([noun_and_ids(noun, others)] if others else [])])


def staying(batch: PartitionBatch, row: int) -> list[int]:
    """The replicas that no reassignment is removing."""
    partition = batch.partition(row)
    return [broker for broker in partition.replicas if broker not in partition.removing_replicas]


def unlisted(batch: PartitionBatch, row: int) -> tuple[int, ...]:
    """The replicas on brokers that the cluster does not list."""
    return tuple(broker for broker in batch.partition(row).replicas if broker not in batch.members.listed)


def unlisted_in_sync(batch: PartitionBatch, row: int) -> list[int]:
    """Those of them that are in sync and up: Kafka lists them by another listener only."""
    in_sync = batch.rows.isr[row][batch.isr_unlisted[row]].tolist()
    return [broker for broker in unlisted(batch, row) if broker in in_sync]


def out_of_sync(batch: PartitionBatch, row: int) -> list[int]:
    """The replicas that are not in the ISR."""
    partition = batch.partition(row)
    return [broker for broker in partition.replicas if broker not in partition.isr]


def live_isr(batch: PartitionBatch, row: int) -> list[int]:
    """The replicas in sync that are up: the ISR that was read may still have a broker that is fenced, and the last in sync stays in it."""
    up, failed = batch.members.alive, failed_replicas(batch, row)
    return [broker for broker in batch.partition(row).isr if broker in up and broker not in failed]


def failed_replicas(batch: PartitionBatch, row: int) -> list[int]:
    """The replicas in a failed log directory of a broker that is up."""
    return [broker for broker in batch.partition(row).offline_replicas if broker in batch.members.alive]


def failed_words(batch: PartitionBatch, row: int) -> str:
    """`; in a failed log directory: broker 3`, or nothing: the end of a reason for which replicas are missing."""
    failed = failed_replicas(batch, row)
    return f"; in a failed log directory: {broker_list(failed)}" if failed else ""


def partitions_named(partitions: list[int]) -> str:
    """`partitions 0,2,5`, the first of them where there are many."""
    more = len(partitions) - PARTITIONS_NAMED
    named = ",".join(map(str, sorted(partitions)[:PARTITIONS_NAMED]))
    return (
        f"partition {named}"
        if len(partitions) == 1
        else f"partitions {named}" + (f" and {more:,} more" if more > 0 else "")
    )
