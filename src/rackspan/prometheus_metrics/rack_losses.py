"""Prometheus metrics of what the loss of each rack would do: the counts of `rackspan outage`, and the verdict of `rackspan audit`.

Every series has the labels `cluster_id` and `cluster`, the name in rackspan.toml or again the id. A value that is not known has
no sample. In a snapshot that is not complete, harm is known where it is found, and that there is none is not.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.core import Metric as Family

from rackspan.audit import RackLoss, RackLosses
from rackspan.audit.outage import AFTER_REASSIGNMENT, STATES
from rackspan.audit.quorum import QuorumAfter
from rackspan.model import shown

_OF_CLUSTER: Final = ("cluster_id", "cluster")
_OF_LOSS: Final = (*_OF_CLUSTER, "lost_rack")
_OF_STATE: Final = (*_OF_LOSS, "state")


@dataclass(frozen=True, slots=True)
class ClusterLosses:
    """The losses of one cluster at present. None if nothing is known of it: what was known before is not repeated.

    `taken_at`: when the newest snapshot was taken, in UTC.
    """

    cluster_id: str | None
    name: str | None
    losses: RackLosses | None
    taken_at: datetime | None

    @property
    def labels(self) -> tuple[str, str]:
        """The values of `cluster_id` and `cluster`."""
        cluster_id = self.cluster_id or ""
        return cluster_id, self.name or cluster_id

    @property
    def complete(self) -> bool:
        return self.losses is not None and self.losses.complete


def rack_loss_families(clusters: Iterable[ClusterLosses]) -> Iterator[Family]:
    """The families of clusters, each with a series for each cluster, rack and state of which the value is known."""
    clusters = list(clusters)
    yield _family(
        "rackspan_rack_loss_known",
        "1 while everything that is needed to judge the loss of a rack is known of the cluster, else 0",
        _OF_CLUSTER,
        ((cluster.labels, cluster.complete) for cluster in clusters),
    )
    yield _family(
        "rackspan_rack_loss_snapshot_timestamp_seconds",
        "When the snapshot was taken by which the losses are judged, in seconds since 1970",
        _OF_CLUSTER,
        ((cluster.labels, cluster.taken_at.timestamp()) for cluster in clusters if cluster.taken_at is not None),
    )
    yield _family(
        "rackspan_any_rack_loss_survived",
        "1 while the loss of any one rack is survived for certain, as the policy requires, else 0; as rackspan audit has it",
        _OF_CLUSTER,
        ((cluster.labels, cluster.losses.any_survived) for cluster in clusters if cluster.losses is not None),
    )
    yield _family(
        "rackspan_rack_loss_survived",
        "1 while everything survives the loss of this rack that the policy requires to, else 0; as rackspan outage --lose has it",
        _OF_LOSS,
        ((labels, losses.survived(loss)) for labels, losses, loss in _each_loss(clusters)),
    )
    yield _family(
        "rackspan_rack_loss_partitions",
        "partitions that the loss of this rack would leave in the state, whatever the policy requires of them; "
        "needs_unclean_election is a part of offline, and a partition may be under both minimums",
        _OF_STATE,
        (
            ((*labels, state), count if count or losses.complete else None)
            for labels, losses, loss in _each_loss(clusters)
            for state in (*STATES, AFTER_REASSIGNMENT)
            for count in [loss.total(state)]
        ),
    )
    yield _family(
        "rackspan_rack_loss_controllers",
        "voters of the controller quorum after the loss of this rack: left, lost with it or before, of unknown rack",
        _OF_STATE,
        (
            ((*labels, state), count)
            for labels, _, loss in _each_loss(clusters)
            if loss.quorum is not None
            for state, count in _controllers(loss.quorum).items()
        ),
    )


def _each_loss(clusters: Iterable[ClusterLosses]) -> Iterator[tuple[tuple[str, str, str], RackLosses, RackLoss]]:
    """Each loss of one rack, with the values of `_OF_LOSS`."""
    known = ((cluster.labels, cluster.losses) for cluster in clusters if cluster.losses is not None)
    for labels, losses in known:
        for loss in losses.losses:
            (rack,) = loss.racks
            yield (*labels, shown(rack)), losses, loss


def _controllers(quorum: QuorumAfter) -> dict[str, int]:
    return {"left": quorum.surviving - quorum.doubtful, "lost": len(quorum.lost), "unknown_rack": quorum.doubtful}


def _family(
    name: str, meaning: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], float | None]]
) -> GaugeMetricFamily:
    """A family of the values that are known."""
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for labelled, value in values:
        if value is not None:
            family.add_metric(labelled, float(value))
    return family
