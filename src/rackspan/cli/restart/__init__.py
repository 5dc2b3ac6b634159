"""rackspan restart: commands.py judges stops and plans restarts, pages.py draws them."""

from rackspan.cli.restart.commands import app

__all__ = ["app"]
