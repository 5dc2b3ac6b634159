"""Changes to a running cluster: a topic, partitions, topic configs, a whole reassignment plan, a rolling restart.

Begin with changes.py (single requests), then run.py, executor.py and journal.py (a plan, step by step, across restarts),
and restarts.py (brokers, batch by batch).
Nothing is decided here: what to write arrives as values. A single change is never retried, since one that timed out may
have been made; the error says so instead. A run observes the cluster before each effect, so there a retry does no harm.
Depends on: audit, client, kafka_bytes, model, plan, reassign, restart, wire.
"""

from rackspan.apply.changes import alter_topic_configs, create_partitions, create_topic
from rackspan.apply.executor import Pace, RunUpdate
from rackspan.apply.journal import Journal, RestartJournal
from rackspan.apply.live import LiveCluster
from rackspan.apply.restarts import RestartCommand, RestartUpdate, next_step, restart
from rackspan.apply.run import cancel, cancel_in_flight, observe_foreign_throttles, run

__all__ = [
    "Journal",
    "LiveCluster",
    "Pace",
    "RestartCommand",
    "RestartJournal",
    "RestartUpdate",
    "RunUpdate",
    "alter_topic_configs",
    "cancel",
    "cancel_in_flight",
    "create_partitions",
    "create_topic",
    "next_step",
    "observe_foreign_throttles",
    "restart",
    "run",
]
