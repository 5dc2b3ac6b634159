"""`pipeline run`, with a Spark of its own, until somebody kills it: python -m tests.pipeline.killed_run WAREHOUSE RACKS."""

import sys
from pathlib import Path

from rackspan import pipeline
from rackspan.audit import RackPolicy

if __name__ == "__main__":
    root, min_insync_racks = sys.argv[1:]
    policy = RackPolicy(min_insync_racks=int(min_insync_racks))
    pipeline.run(pipeline.open_warehouse(Path(root)), policy, "local[1]")
