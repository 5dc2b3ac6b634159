"""Drift: what changed between two snapshots of one cluster, and which change made a partition safer or less safe.

Begin with compare.py (two whole snapshots), then changes.py and causes.py, whose functions Spark calls on batches. Two
snapshots in, changes out; nothing here reads a cluster or a file.
"""

from rackspan.audit.drift.causes import RECREATED, SEVERAL
from rackspan.audit.drift.changes import CHANGES, Change
from rackspan.audit.drift.compare import drift

__all__ = ["CHANGES", "RECREATED", "SEVERAL", "Change", "drift"]
