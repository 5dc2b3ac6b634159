"""What the pages say of plans: where each partition goes, what it costs, and what a judge finds in somebody's plan."""

from collections.abc import Iterator

from rackspan.audit import RackPolicy
from rackspan.model import ClusterSnapshot
from rackspan.plan import in_steps
from rackspan.reassign import ListedPartition, ReassignmentDocument, Request, lint, plan


def planned(snapshot: ClusterSnapshot, policy: RackPolicy, request: Request) -> Iterator[str]:
    """Steps with their partitions, then the account."""
    found, targets = plan(snapshot, policy, request), list(plan(snapshot, policy, request).targets())
    for number, step in enumerate(in_steps(found, policy), start=1):
        yield f"step {number}, {_count(step.moves, 'move')}: {step.reason}"
        for entry in step.entries.tolist():
            topic, partition, replicas = targets[entry]
            yield f"  {topic}-{partition}: {','.join(map(str, replicas))}"
    for words in found.left_out:
        yield f"left out: {words}"
    for conflict in found.infeasible:
        yield f"cannot be: {conflict.reason}"
        yield f"  mend it with: {conflict.remedy}"
    yield f"{_count(found.moves, 'move')}, at least {found.lower_bound} needed"


def linted(snapshot: ClusterSnapshot, policy: RackPolicy, wanted: dict[str, str]) -> Iterator[str]:
    """`wanted`: replicas by partition, `orders-0` → `1,2,3`."""
    entries = [
        ListedPartition(topic, int(partition), tuple(int(broker) for broker in replicas.split(",") if broker))
        for (topic, _, partition), replicas in ((name.rpartition("-"), text) for name, text in wanted.items())
    ]
    found = lint(snapshot, policy, ReassignmentDocument(tuple(entries)))
    for one in found:
        where = "the plan" if one.topic is None else f"{one.topic}-{one.partition}"
        yield f"{one.severity} {one.constraint}, {where}: {one.reason}"
        yield f"  mend it with: {one.remedy}"
    if not found:
        yield "nothing found"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
