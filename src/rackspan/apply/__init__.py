"""Changes to a running cluster: a topic, partitions, topic configs, and a whole plan of reassignments.

Begin with changes.py (one request, and Kafka says yes or no to it), then run.py, executor.py and journal.py (a plan, step
by step, through kills). This room decides nothing: what to write arrives as values, and who calls it has been told to by
`--apply`. A single change is never tried twice, since one that timed out may have been made; it says so instead. A run
looks at the cluster before each effect, so there a second try does no harm.
"""

from rackspan.apply.changes import alter_topic_configs, create_partitions, create_topic
from rackspan.apply.executor import Happened, Pace
from rackspan.apply.journal import Journal
from rackspan.apply.live import LiveCluster
from rackspan.apply.run import cancel, run

__all__ = [
    "Happened",
    "Journal",
    "LiveCluster",
    "Pace",
    "alter_topic_configs",
    "cancel",
    "create_partitions",
    "create_topic",
    "run",
]
