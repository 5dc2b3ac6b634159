"""How much a run reads, in the two figures that decide how it is best read."""

from pyspark.sql import functions as F

from rackspan.pipeline.frames.inputs import Inputs
from rackspan.sources.snapshot_folder import count_topics


def topic_count(inputs: Inputs) -> int:
    """Topics of all snapshots together. Errors: InvalidSnapshot."""
    return sum(count_topics(one.folder) for one in inputs.stored)


def widest_list(inputs: Inputs) -> int:
    """The longest list of replicas, or of those in sync. One job, which reads these two columns."""
    length = F.greatest(F.size("replicas"), F.size("isr"))
    ((widest,),) = inputs.partition_files.agg(F.max(length)).collect()
    return widest or 0
