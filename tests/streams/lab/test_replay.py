from random import Random
from typing import Any

import pytest

from rackspan.errors import UsageError
from rackspan.streams import assign, replay, settings
from rackspan.streams.lab.replay import Setting
from rackspan.streams.problem import Costs, Strategy
from tests.streams.problems import problem

Document = Any


def runs(document: Document, *assignors: str, weights: tuple[str, ...] = ()) -> list[Document]:
    rows: list[Document] = replay({"one": document}, settings(assignors, [], weights))["problems"][0]["runs"]
    return rows


def test_by_default_both_of_kafkas_assignors_meet_every_strategy() -> None:
    assert settings([], [], []) == [
        Setting(assignor, strategy) for assignor in ("high-availability", "sticky") for strategy in Strategy
    ]


def test_strategy_none_has_no_weights() -> None:
    assert settings(["sticky"], ["none", "min_cost"], ["10/1", "1/10"]) == [
        Setting("sticky", Strategy.NONE),
        Setting("sticky", Strategy.MIN_TRAFFIC, Costs(10, 1)),
        Setting("sticky", Strategy.MIN_TRAFFIC, Costs(1, 10)),
    ]


@pytest.mark.parametrize("weights", ["10", "10/", "/1", "10/-1", "a/b", "1/2/3", "10 / 1", f"{10**12}/{10**12}"])
def test_wrong_weights_get_one_line(weights: str) -> None:
    with pytest.raises(
        UsageError, match=r"^weights .*: they are written TRAFFIC/NON-OVERLAP, such as 10/1; correct them$"
    ):
        settings([], [], [weights])


def test_unknown_names_get_one_line() -> None:
    with pytest.raises(UsageError, match="assignor 'best' is unknown"):
        settings(["best"], [], [])
    with pytest.raises(UsageError, match="strategy is 'fast'"):
        settings([], ["fast"], [])


@pytest.mark.slow
def test_the_optimiser_alone_has_the_same_cost_in_the_lab_as_in_assign() -> None:
    for seed in range(30):
        document = problem(Random(seed))
        # Settings come before what the problem is configured with.
        document["config"] |= {"traffic_cost": 0, "non_overlap_cost": 10}
        [_, least, spread] = runs(document, "optimize", weights=("10/1",))
        for run in (least, spread):
            costs = {"traffic_cost": 10, "non_overlap_cost": 1}
            configured = {**document, "config": {**document["config"], **costs, "strategy": run["strategy"]}}
            assigned = assign(configured, "optimize")
            moved = sum(
                len(set(held["active"]) - set(document["initial_active"][client]))
                for client, held in assigned["assignment"].items()
            )
            # Non-overlap costs favour the running assignment: once it is optimal, no further move saves cost.
            assert run["moved"]["at_once"] == moved
            assert run["cross_rack"]["active"] <= assigned["cross_rack"]["active"]
            assert run["cost"] == 10 * run["cross_rack"]["active"]


@pytest.mark.slow
def test_a_heavier_overlap_never_moves_more_and_a_heavier_traffic_never_reads_more() -> None:
    for seed in range(30):
        document = problem(Random(seed))
        [_, traffic, overlap] = [
            run
            for run in runs(document, "optimize", weights=("10/1", "1/10"))
            if run["strategy"] != "balance_subtopology"
        ]
        assert traffic["cross_rack"]["active"] <= overlap["cross_rack"]["active"]
        assert overlap["moved"]["at_once"] <= traffic["moved"]["at_once"]


def test_balance_is_counted_for_each_thread_and_each_sub_topology() -> None:
    ids = [f"00000000-0000-4000-8000-00000000000{at}" for at in (1, 2)]
    document = {
        "clients": [
            {"process_id": process_id, "rack": "r1", "threads": threads}
            for process_id, threads in zip(ids, (1, 2), strict=True)
        ],
        "tasks": [
            {"id": f"{name}_{at}", "source": [f"in{name}:{at}"]} for name, of in ((0, 3), (1, 1)) for at in range(of)
        ],
        "partitions": {f"in{name}:{at}": ["r1"] for name in (0, 1) for at in range(3)},
        "initial_active": {ids[0]: ["0_0"], ids[1]: ["0_1", "0_2", "1_0"]},
    }
    [run, *_] = runs(document, "optimize")
    assert run["balance"] == {"tasks_per_thread": {"least": 1.0, "most": 1.5}, "subtopology_gap": 1}
    assert (run["rounds"], run["moved"]) == (0, {"at_once": 0, "in_all": 0})


def test_where_racks_are_unknown_the_row_has_the_reason() -> None:
    document = problem(Random(1))
    document["clients"][0]["rack"] = None
    [_, least, _] = runs(document, "high-availability")
    assert (least["enabled"], least["cross_rack"]["active"], least["cost"]) == (False, None, None)
    assert "has no client.rack" in least["reason"]
