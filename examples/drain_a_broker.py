"""Empty a broker from Python: read the cluster, plan, audit the outcome, carry it out, verify. Plans are values, not files.

python examples/drain_a_broker.py 127.0.0.1:9092 3 drain-3.journal
"""

import sys
from pathlib import Path

from rackspan import api


def main(bootstrap_servers: str, broker: int, journal: Path) -> int:
    """Print what the plan costs and each effect on the cluster. Run it again with the same journal to resume."""
    cluster = api.Cluster(bootstrap_servers, command_config=None, timeout_seconds=30)
    source = api.live_cluster(bootstrap_servers, command_config=None, timeout_seconds=30)
    snapshot = source.read().snapshot
    plan = api.plan_reassignment(snapshot, request=api.ReassignmentRequest(drain=frozenset({broker})))
    print(f"{plan.moves} moves in {len(plan.steps)} steps")
    for conflict in plan.infeasible:
        print(f"impossible: {conflict.reason}; {conflict.remedy}")
        return 2
    findings = api.audit(api.snapshot_after(snapshot, plan, frozenset({broker}))).findings
    print(f"{len(findings)} findings without broker {broker}")
    for update in api.carry_out(cluster, plan, journal, limits=api.RunLimits(bytes_per_second=50_000_000)):
        print(type(update.effect).__name__)
    verified = api.verify_reassignment(source.read().snapshot, plan)
    print(f"{sum(one.state == 'done' for one in verified)} of {len(verified)} partitions done")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
