"""Replays of a group: one problem under many assignors, strategies and weights, each rebalanced until it settles.

Begin with rebalances.py (rebalance after rebalance), then replay.py (the table) and picture.py (the table as SVG).
"""

from rackspan.streams.lab.replay import Setting, replay, settings

__all__ = ["Setting", "replay", "settings"]
