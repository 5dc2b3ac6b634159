from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.streams import assign
from tests.streams.problems import problem


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    rng = Random(draw(st.integers(0, 2**32)))
    return problem(rng, draw(st.sampled_from(["none", "min_traffic", "balance_subtopology"])), draw(st.integers(0, 2)))


@given(documents())
def test_every_task_is_active_once_and_on_a_client_in_one_role(document: dict[str, Any]) -> None:
    held = assign(document, "sticky")["assignment"].values()
    assert sorted(task for client in held for task in client["active"]) == sorted(
        task["id"] for task in document["tasks"]
    )
    assert all(not set(client["active"]) & set(client["standby"]) for client in held)


@pytest.mark.parametrize(("partitions", "stateful_cost", "across"), [(9, 18, 18), (11, 20, 0)])
def test_staying_outweighs_ten_partitions_across_racks_by_default(
    partitions: int, stateful_cost: int, across: int
) -> None:
    """The default costs are 1 and 10: two tasks change places only if each has more than ten partitions across racks."""
    ids = [f"00000000-0000-0000-0000-{at:012d}" for at in (1, 2)]
    of_task = [[f"in{at}:{number}" for number in range(partitions)] for at in (0, 1)]
    document: dict[str, Any] = {
        "config": {"strategy": "min_traffic"},
        "clients": [
            {"process_id": ids[0], "rack": "r1", "threads": 1, "prev_active": ["0_0"]},
            {"process_id": ids[1], "rack": "r2", "threads": 1, "prev_active": ["0_1"]},
        ],
        "tasks": [{"id": f"0_{at}", "stateful": True, "source": of_task[at]} for at in (0, 1)],
        "partitions": {name: [rack] for at, rack in enumerate(("r2", "r1")) for name in of_task[at]},
    }
    assigned = assign(document, "sticky")
    assert (assigned["cost"]["stateful"], assigned["cross_rack"]["active"]) == (stateful_cost, across)
    document["config"] |= {"traffic_cost": 0, "non_overlap_cost": 1}
    assert assign(document, "sticky")["cross_rack"]["active"] == 2 * partitions


@pytest.mark.parametrize("holder", [0, 1])
def test_a_task_without_owner_goes_to_its_previous_standby_before_others_fill_that_client(holder: int) -> None:
    ids = [f"00000000-0000-0000-0000-{at:012d}" for at in (1, 2)]
    document: dict[str, Any] = {
        "config": {"strategy": "none"},
        "clients": [
            {"process_id": one, "rack": "r1", "threads": 1, "prev_standby": ["0_1"] if at == holder else []}
            for at, one in enumerate(ids)
        ],
        "tasks": [{"id": f"0_{at}", "stateful": True, "source": [f"in:{at}"]} for at in (0, 1)],
        "partitions": {"in:0": ["r1"], "in:1": ["r1"]},
    }
    held = assign(document, "sticky")["assignment"]
    assert {client: one["active"] for client, one in held.items()} == {ids[holder]: ["0_1"], ids[1 - holder]: ["0_0"]}
