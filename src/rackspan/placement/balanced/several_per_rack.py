"""Distribution with several replicas a rack (replication factor above the number of racks)."""

from typing import Final

import numpy as np

from rackspan.model.partitions import Int32s, Int64s
from rackspan.placement.balanced.broker_table import BrokerTable
from rackspan.placement.balanced.strides import DRAW_BELOW
from rackspan.placement.kafka.java_random import RandomGenerator

BLOCKS_MAX: Final = 64
"""Each block has a new order of brokers. More blocks make more distinct replica sets; with 64 a broker shares partitions
with nearly every other, and they cost less than a tenth of the rest."""

BLOCK_MIN: Final = 4
"""The fewest partitions of a block; with fewer, most quotas of a block are zero."""


def distribute_several_per_rack(
    table: BrokerTable, replicas: Int64s, replication_factor: int, rng: RandomGenerator
) -> Int32s:
    """Indices into `table`, shape (replication factor, P), in no order within a column, equal columns side by side.

    `replicas`: each broker's quota, at most P; a rack's sum lies between P × floor and P × ceil of its even spread.
    Constraints: no broker twice in a column; in each column a rack appears its floor or ceil of times.
    Method: lay brokers end to end, rack beside rack, each as long as its quota, and cut the line into RF rows of P. A
        stretch of length l covers each column ⌊l/P⌋ or ⌈l/P⌉ times: brokers at most once, racks floor or ceil
        (McNaughton's rule). For many distinct replica sets P is split into blocks, each with racks and brokers shuffled
        again; a block of k of the n partitions left takes ⌊C × k/n⌋ of the first C replicas of its line, so every broker
        and every rack gives up floor or ceil of its part, which keeps both conditions for what is left.
    Bound: O(P × RF + 64 × B); exact in every quota.
    Source: McNaughton 1959; the blocks are ours. Test: tests/placement/balanced/test_several_per_rack.py.
    """
    partitions = int(replicas.sum()) // replication_factor
    left = replicas.copy()
    blocks = max(1, min(BLOCKS_MAX, partitions // BLOCK_MIN))
    columns = np.empty((replication_factor, partitions), dtype=np.int32)
    for block in range(blocks):
        begin, end = partitions * block // blocks, partitions * (block + 1) // blocks
        line = _line(table, rng)
        share = _share_of_block(left[line], end - begin, partitions - begin)
        columns[:, begin:end] = np.repeat(line, share).reshape(replication_factor, end - begin)
        left[line] -= share
    return columns


def _line(table: BrokerTable, rng: RandomGenerator) -> Int64s:
    """Brokers in a random order in which each rack stays together."""
    draws = rng.next_ints(np.full(len(table) + len(table.rack_sizes), DRAW_BELOW, dtype=np.int64))
    of_broker, of_rack = draws[: len(table)], draws[len(table) :]
    return np.lexsort((of_broker, table.rack, of_rack[table.rack]))


def _share_of_block(left: Int64s, block: int, partitions: int) -> Int64s:
    before = np.cumsum(left) * block // partitions
    return np.diff(before, prepend=0)
