"""python -m rackspan"""

from rackspan.cli import run

run()
