"""What the pages say of plans: where each partition goes, what it costs, and what a judge finds in somebody's plan."""

from collections.abc import Iterator

from rackspan.audit import RackPolicy
from rackspan.model import ClusterSnapshot
from rackspan.plan import order_steps
from rackspan.reassign import ListedPartition, ReassignmentDocument, ReassignmentRequest, lint, plan


def planned(snapshot: ClusterSnapshot, policy: RackPolicy, request: ReassignmentRequest) -> Iterator[str]:
    """Steps with their partitions, then the account."""
    found = order_steps(snapshot, plan(snapshot, policy, request), policy, request=request)
    cost = found.cost
    assert cost is not None
    for step in found.steps:
        yield f"step {step.number}, {_count(step.moves, 'move')}: {step.reason}"
        for one in step.partitions:
            yield f"  {one.name}: {','.join(map(str, one.replicas))}"
    for words in cost.left_out:
        yield f"not planned: {words}"
    for conflict in cost.infeasible:
        yield f"{'refused' if conflict.refused else 'impossible'}: {conflict.reason}"
        yield f"  fix with: {conflict.remedy}"
    yield f"{_count(found.moves, 'move')}, at least {cost.lower_bound} needed"


def linted(
    snapshot: ClusterSnapshot, policy: RackPolicy, wanted: dict[str, str], drain: frozenset[int] = frozenset()
) -> Iterator[str]:
    """`wanted`: replicas by partition, `orders-0` → `1,2,3`."""
    entries = [
        ListedPartition(topic, int(partition), tuple(int(broker) for broker in replicas.split(",") if broker))
        for (topic, _, partition), replicas in ((name.rpartition("-"), text) for name, text in wanted.items())
    ]
    found = lint(snapshot, policy, ReassignmentDocument(tuple(entries)), ReassignmentRequest(drain=drain))
    for one in found:
        where = "the plan" if one.topic is None else f"{one.topic}-{one.partition}"
        yield f"{one.severity} {one.constraint}, {where}: {one.reason}"
        yield f"  fix with: {one.remedy}"
    if not found:
        yield "nothing found"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
