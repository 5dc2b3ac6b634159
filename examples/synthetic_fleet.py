"""Weeks of a fleet of five clusters as files, for trying the pipeline without a cluster: what is wrong in it is printed.

python examples/synthetic_fleet.py snapshots
rackspan pipeline collect --from-snapshots snapshots --warehouse warehouse
"""

import sys
from datetime import timedelta
from pathlib import Path

from rackspan import api
from rackspan.demo.fleet import synthetic_fleet


def main(folder: Path, days: int = 14) -> None:
    """A snapshot of each cluster every six hours."""
    fleet = synthetic_fleet(seed=1, days=days)
    folder.mkdir(parents=True, exist_ok=True)
    for reading in fleet.readings(timedelta(hours=6)):
        snapshot = reading.logs.snapshot
        file = folder / f"{reading.logs.read_at:%Y-%m-%dT%H}-{snapshot.cluster_id}.json"
        file.write_text(api.snapshot_json(snapshot), encoding="utf-8")
    for fault in fleet.faults:
        print(f"{fault.cluster}: {fault.topic}: {fault.kind}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
