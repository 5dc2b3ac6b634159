"""Volumes of a snapshot of which only the bytes in are known."""

import numpy as np

from rackspan.model import ClusterSnapshot
from rackspan.model.partitions import UNKNOWN_SIZE, Int64s
from rackspan.traffic import Volumes


def volumes_of(snapshot: ClusterSnapshot, bytes_in: Int64s) -> Volumes:
    """Each replica copied all that its leader received, but for those that a reassignment adds."""
    rows = snapshot.partitions
    copied = np.repeat(bytes_in[:, None], rows.replicas.shape[1], axis=1)
    added = (rows.replicas[:, :, None] == rows.adding_replicas[:, None, :]).any(axis=2)
    copied[added] = UNKNOWN_SIZE
    return Volumes(
        bytes_in,
        np.zeros(len(bytes_in), np.bool_),
        np.full(len(bytes_in), -1, np.int64),
        np.full(len(bytes_in), np.inf),
        copied,
        np.zeros(copied.shape, np.bool_),
        added,
    )
