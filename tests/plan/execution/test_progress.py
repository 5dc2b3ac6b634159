from rackspan.plan.execution.events import Account
from rackspan.plan.execution.observed import InFlight, ObservedCluster
from rackspan.plan.execution.progress import Progress, progress
from rackspan.plan.written import PartitionMove, WrittenPlan, WrittenStep

DONE = PartitionMove("orders", 0, (4, 5), (1, 2))
ON_THE_WAY = PartitionMove("orders", 1, (4, 5), (1, 2))
PLAN = WrittenPlan("c", {}, (WrittenStep(1, "", (DONE,)), WrittenStep(2, "", (ON_THE_WAY,))))


def test_copies_count_once_they_are_in_sync() -> None:
    seen = ObservedCluster(
        "c",
        frozenset(),
        isr={ON_THE_WAY.place: (1, 2, 5)},
        in_flight={ON_THE_WAY.place: InFlight((4, 5, 1, 2), (4, 5), (1, 2)), ("other", 0): InFlight((1,))},
    )
    found = progress(Account(PLAN, done=frozenset({1})), seen)
    assert found == Progress(step=2, steps=2, copied=3, copies=4, moving=1)
    ended = progress(Account(PLAN, done=frozenset({1, 2})), seen)
    assert ended == Progress(step=2, steps=2, copied=4, copies=4, moving=1)
