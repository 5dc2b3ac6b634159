"""`pipeline run`, with Spark, to be killed: python -m tests.pipeline.killed_run WAREHOUSE MIN_INSYNC_RACKS MOMENT.

It dies by itself before its touch of that number (killed.py), or goes on until somebody else kills it.
"""

import sys
from pathlib import Path

from rackspan import pipeline
from rackspan.audit import RackPolicy
from tests.pipeline.killed import kill_myself_at


def main(root: str, min_insync_racks: str, moment: str) -> None:
    kill_myself_at(int(moment), Path(root))
    pipeline.run(pipeline.open_warehouse(Path(root)), RackPolicy(min_insync_racks=int(min_insync_racks)), "local[1]")


if __name__ == "__main__":
    main(*sys.argv[1:])
