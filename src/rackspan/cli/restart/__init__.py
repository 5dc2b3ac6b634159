"""rackspan restart: commands.py judges stops and plans restarts, pages.py draws them; watch.py follows restarts or carries them out.

They decide nothing.
"""

from rackspan.cli.restart.commands import app

__all__ = ["app"]
