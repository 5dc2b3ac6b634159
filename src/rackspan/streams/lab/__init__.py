"""A group replayed: one problem under many assignors, strategies and weights, each until it no longer rebalances.

Begin with rebalances.py (rebalance after rebalance), then replay.py (the table) and picture.py (the table as SVG).
"""

from rackspan.streams.lab.replay import Setting, replay, settings

__all__ = ["Setting", "replay", "settings"]
