"""Replays of a group: one problem under many assignors, strategies and weights, each rebalanced until it settles.

Begin with replay.py (rebalance after rebalance, and the table), then picture.py (the table as SVG).
No group of a cluster is touched.
"""

from rackspan.streams.lab.replay import Setting, replay, settings

__all__ = ["Setting", "replay", "settings"]
