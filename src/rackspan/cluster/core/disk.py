"""The disk of a broker, which outlives its process: the logs, and the mark of a clean shutdown."""

from dataclasses import dataclass, field

from rackspan.cluster.core.ids import NO_EPOCH
from rackspan.cluster.core.log import PartitionLog
from rackspan.model.ids import TopicPartition


@dataclass(slots=True)
class Disk:
    """One broker's disk. `clean_shutdown_epoch` is the broker epoch that ended with every log whole, NO_EPOCH otherwise.

    The caller decides what a fault does to it: a process that is killed loses nothing it had written, so its
    mark may be set; a power loss cuts logs short, and an empty disk never has a mark.
    """

    logs: dict[TopicPartition, PartitionLog] = field(default_factory=dict)
    clean_shutdown_epoch: int = NO_EPOCH
