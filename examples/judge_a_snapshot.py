"""Judge a snapshot from Python: what is wrong, and which racks can be lost.

python examples/judge_a_snapshot.py snapshot.json
"""

import sys
from pathlib import Path

from rackspan import api


def main(path: Path) -> int:
    """Print every finding and a line a rack; 2 where there is something to act on, as the command line has it."""
    snapshot = api.snapshot_file(path).read().snapshot
    judged = api.audit(snapshot)
    for finding in judged.findings:
        print(f"{finding.severity} {finding.constraint} {finding.topic or 'cluster'}: {finding.reason}")
    for loss in judged.losses:
        print(f"without {' and '.join(loss.racks)}: {'survives' if loss.survived else 'does not survive'}")
    return 0 if judged.clean else 2


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
