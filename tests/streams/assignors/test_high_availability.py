"""The whole assignor over several rebalances: valid, converging, and cheaper with rack-local clients."""

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan import streams
from tests.depth import examples
from tests.streams.churn import REBALANCES_TO_WARM_UP, Churn
from tests.streams.problems import problem

Document = dict[str, Any]

assign: Callable[..., Any] = streams.assign
"""With any type: the tests index values that are null for other problems."""

A_QUARTER = examples(0.25)
"""Each example is many rebalances."""
STRATEGIES = st.sampled_from(["none", "min_traffic", "balance_subtopology"])


@st.composite
def groups(draw: st.DrawFn) -> Document:
    tags = draw(st.sampled_from([(), ("zone",)]))
    rng = Random(draw(st.integers(0, 2**32)))
    return problem(rng, draw(STRATEGIES), draw(st.integers(0, 2)), tags)


def next_generation(document: Document, assigned: Any) -> Document:
    """The group after all warm-ups: clients are at the end of their active tasks and caught up on their standbys."""
    later = deepcopy(document)
    for client in later["clients"]:
        held = assigned["assignment"][client["process_id"]]
        client.update(prev_active=held["active"], prev_standby=held["standby"], lags={})
    return later


@given(groups())
def test_every_task_is_active_once_and_on_a_client_in_one_role(document: Document) -> None:
    assigned = assign(document, "high-availability")
    held = assigned["assignment"].values()
    assert sorted(task for client in held for task in client["active"]) == sorted(
        task["id"] for task in document["tasks"]
    )
    assert all(not set(client["active"]) & set(client["standby"]) for client in held)


@given(groups())
def test_warm_ups_stay_within_their_budget(document: Document) -> None:
    document = {**document, "config": {**document["config"], "num_standbys": 0}}
    assigned = assign(document, "high-availability")
    extra = sum(len(client["standby"]) for client in assigned["assignment"].values())
    assert extra <= document["config"]["max_warmup_replicas"]


@pytest.mark.slow
@given(groups())
def test_probing_rebalances_converge_and_a_converged_assignment_stays_put(document: Document) -> None:
    assigned = assign(document, "high-availability")
    rounds = 0
    while assigned["probing_rebalance"]:
        rounds += 1
        assert rounds <= len(document["tasks"]) * (1 + document["config"]["num_standbys"]) + 1
        document = next_generation(document, assigned)
        assigned = assign(document, "high-availability")
    settled = next_generation(document, assigned)
    again = assign(settled, "high-availability")
    assert again["assignment"] == assigned["assignment"]
    assert not again["probing_rebalance"]


@A_QUARTER
@given(groups(), st.integers(1, 6), st.integers(0, 2**32))
def test_a_group_converges_after_random_joins_and_leaves_and_partial_warm_ups(
    document: Document, disturbances: int, seed: int
) -> None:
    """As Kafka's TaskAssignorConvergenceTest does it, with racks: it ends in the lasting assignment, and no sooner is it quiet."""
    group = Churn(document, Random(seed))
    tasks = sorted(task["id"] for task in document["tasks"])
    for _ in range(disturbances):
        group.disturb()
        held = group.rebalance()["assignment"].values()
        assert sorted(task for client in held for task in client["active"]) == tasks
        assert all(not set(client["active"]) & set(client["standby"]) for client in held)
        group.warm_up()
    assigned = group.rebalance()
    rounds = 0
    while assigned["probing_rebalance"]:
        rounds += 1
        assert rounds <= REBALANCES_TO_WARM_UP * (len(tasks) * (1 + document["config"]["num_standbys"]) + 1)
        group.warm_up()
        assigned = group.rebalance()
    strategy = document["config"]["strategy"]
    assert assigned["assignment"] == group.lasting(strategy)["assignment"]
    if strategy == "min_traffic" and document["config"]["traffic_cost"] != 0:
        assert assigned["cross_rack"]["active"] <= group.lasting("none")["cross_rack"]["active"]
    group.warm_up()
    again = group.rebalance()
    assert (again["assignment"], again["probing_rebalance"]) == (assigned["assignment"], False)


@pytest.mark.slow
@given(groups())
def test_racks_never_raise_the_cost_of_the_lasting_assignment(document: Document) -> None:
    def crossing(strategy: str) -> int:
        config = {**document["config"], "strategy": strategy, "acceptable_recovery_lag": 2**63 - 1}
        config |= {"traffic_cost": 10, "non_overlap_cost": 0}
        assigned = assign({**document, "config": config}, "high-availability")
        assert not assigned["probing_rebalance"]
        return int(assigned["cross_rack"]["active"])

    assert crossing("min_traffic") <= crossing("balance_subtopology")
    assert crossing("min_traffic") <= crossing("none")


@given(groups(), st.integers(0, 2**32 - 1))
def test_a_further_rack_local_client_never_raises_traffic(document: Document, seed: int) -> None:
    """With equal threads no client gets more tasks when one joins, and the tasks of the new client cross no rack."""
    document = deepcopy(document)
    document["config"] |= {"strategy": "min_traffic", "traffic_cost": 10, "non_overlap_cost": 0, "num_standbys": 0}
    document["config"]["acceptable_recovery_lag"] = 2**63 - 1
    for task in document["tasks"]:
        # Stateless tasks would be assigned by the load of the stateful ones.
        task["stateful"], task["changelog"] = True, ["log:0"]
    document["partitions"] = {name: [*racks, "local"] for name, racks in document["partitions"].items()} | {
        "log:0": ["local"]
    }
    for client in document["clients"]:
        client.update(threads=1, prev_active=[], prev_standby=[], lags={})
    process_id = f"{seed:08x}-0000-4000-8000-000000000000"
    larger = {**document, "clients": [*document["clients"], {"process_id": process_id, "rack": "local", "threads": 1}]}
    before, after = assign(document, "high-availability"), assign(larger, "high-availability")
    assert after["cost"]["stateful"] <= before["cost"]["stateful"]


@pytest.mark.slow
@given(groups(), st.randoms(use_true_random=False))
def test_equal_groups_get_equal_assignments_however_they_are_listed(document: Document, rng: Random) -> None:
    shuffled = deepcopy(document)
    rng.shuffle(shuffled["clients"])
    rng.shuffle(shuffled["tasks"])
    shuffled["partitions"] = dict(reversed(shuffled["partitions"].items()))
    for assignor in ("high-availability", "sticky", "optimize"):
        assert assign(document, assignor) == assign(shuffled, assignor)


@pytest.mark.parametrize("lag", [0, 100])
def test_the_intended_client_takes_over_once_it_is_within_the_acceptable_lag(lag: int) -> None:
    behind = _two_clients(lag=lag + 1, acceptable=lag)
    assert _active_on_second(assign(behind, "high-availability")) == []
    caught_up = _two_clients(lag=lag, acceptable=lag)
    assert _active_on_second(assign(caught_up, "high-availability")) == ["0_1"]


def _two_clients(lag: int, acceptable: int) -> Document:
    ids = [f"00000000-0000-0000-0000-{at:012d}" for at in (1, 2)]
    return {
        "config": {"acceptable_recovery_lag": acceptable},
        "clients": [
            {"process_id": ids[0], "threads": 1, "prev_active": ["0_0", "0_1"]},
            {"process_id": ids[1], "threads": 1, "prev_standby": ["0_1"], "lags": {"0_1": lag}},
        ],
        "tasks": [{"id": f"0_{at}", "stateful": True, "source": [f"in:{at}"]} for at in (0, 1)],
        "partitions": {},
    }


def _active_on_second(assigned: Document) -> list[str]:
    _, second = assigned["assignment"].values()
    return list(second["active"])
