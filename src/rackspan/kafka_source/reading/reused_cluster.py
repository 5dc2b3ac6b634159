"""One open connection to the cluster, passed from a task to the next one in the same Python worker.

A micro-batch is a task a partition every few seconds, and Spark keeps its workers: connecting and logging in would cost each
task more than it reads.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rackspan.kafka_source.cluster import SourceCluster
from rackspan.kafka_source.options import ClientOptions

IDLE_SECONDS: Final = 60.0
"""A connection that has been idle for longer is not used again: brokers and networks close those, networks without a word."""


class _Kept(threading.local):
    """Each thread's own: Spark reads in the workers' main threads, tests in several of one process."""

    cluster: tuple[ClientOptions, SourceCluster, float] | None = None


_kept: Final = _Kept()


@contextmanager
def reused_cluster(client: ClientOptions) -> Iterator[SourceCluster]:
    """The cluster that the last task of this thread used, if its options were equal; kept for the next one.

    After an error, or if the reader stopped early, it is closed: a response may be outstanding.
    """
    cluster = _kept_for(client) or SourceCluster(client)
    try:
        yield cluster
    except BaseException:
        cluster.close()
        raise
    _close_kept()
    _kept.cluster = (client, cluster, time.monotonic())


def _kept_for(client: ClientOptions) -> SourceCluster | None:
    kept, _kept.cluster = _kept.cluster, None
    if kept is None:
        return None
    options, cluster, since = kept
    if options == client and time.monotonic() - since < IDLE_SECONDS:
        return cluster
    cluster.close()
    return None


def _close_kept() -> None:
    """The cluster of a task that began before this one and ended within it."""
    if _kept.cluster is not None:
        _kept.cluster[1].close()
        _kept.cluster = None
