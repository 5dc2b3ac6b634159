import numpy as np
import pytest

from rackspan.streams import KAFKA
from rackspan.streams.active.optimize import optimize_active
from rackspan.streams.formats import from_document
from rackspan.streams.problem import Beyond, Costs, Options


@pytest.mark.parametrize("options", [KAFKA, Options(frozenset({Beyond.PREVIOUS_OVERLAP}))])
@pytest.mark.parametrize(("strategy", "in_rack_0"), [("min_traffic", 4), ("balance_subtopology", 2)])
def test_the_strategy_of_the_configs_decides(strategy: str, in_rack_0: int, options: Options) -> None:
    """Facts 258 and 259 of Kafka's RackAwareGraphConstructorFactoryTest.

    All four tasks of sub-topology 0 are read in rack r0 alone, those of sub-topology 1 in both: traffic is least with the
    first four on the client in r0, and the other strategy leaves two there.
    """
    tasks = [f"{subtopology}_{number}" for subtopology in (0, 1) for number in range(4)]
    clients = [f"00000000-0000-4000-8000-00000000000{number}" for number in (1, 2)]
    problem = from_document(
        {
            "config": {"strategy": strategy, "traffic_cost": 10, "non_overlap_cost": 0},
            "clients": [
                {"process_id": client, "rack": f"r{number}", "threads": 1, "prev_active": tasks[number::2]}
                for number, client in enumerate(clients)
            ],
            "tasks": [{"id": task, "source": [f"topic-{task[0]}:{task[2]}"], "changelog": []} for task in tasks],
            "partitions": {f"topic-{task[0]}:{task[2]}": ["r0", "r1"][: 1 + int(task[0])] for task in tasks},
        }
    )
    members, owner = np.arange(8, dtype=np.int32), np.array([0, 1] * 4, dtype=np.int32)
    optimum = optimize_active(problem, members, owner, Costs(10, 0), options)
    assert np.count_nonzero(optimum.client[:4] == 0) == in_rack_0
    assert np.bincount(optimum.client).tolist() == [4, 4]
