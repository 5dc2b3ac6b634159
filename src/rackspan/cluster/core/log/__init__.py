"""One partition's log on one broker: batches, leader epochs, the state of producers, transactions.

Begin with partition_log.py. It decides neither the high watermark nor the ISR: the broker does.
"""

from rackspan.cluster.core.log.compaction import COMPACTION_KEYS, CompactionConfig, RecordBody
from rackspan.cluster.core.log.epoch_cache import EpochCache, EpochEnd
from rackspan.cluster.core.log.partition_log import PartitionLog
from rackspan.cluster.core.log.producer_state import AbortedTransaction, Duplicate

__all__ = [
    "COMPACTION_KEYS",
    "AbortedTransaction",
    "CompactionConfig",
    "Duplicate",
    "EpochCache",
    "EpochEnd",
    "PartitionLog",
    "RecordBody",
]
