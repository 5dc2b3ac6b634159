"""The assignment document: its keys, its values with rack awareness off, and each option beyond Kafka."""

from collections.abc import Callable
from itertools import count, product
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan import streams
from rackspan.errors import InvalidProblem, UsageError
from rackspan.streams import Beyond, Options, options_named
from tests.depth import at_depth
from tests.streams.formats.test_problem import GOOD, A, B, Change, drop, put
from tests.streams.problems import Document, problem, with_standbys
from tests.streams.test_rack_awareness import changed

assign: Callable[..., Any] = streams.assign
"""With any type: the tests index values that are null for other problems."""

C = "00000000-0000-0000-0000-00000000000c"

CROSSED = changed(put("initial_active", {A: ["0_1", "1_0"], B: ["0_0"]}), drop("initial_standby"))


def test_the_assignment_document_has_its_keys_in_order() -> None:
    ticks = count(10, 2)
    assigned = assign(CROSSED, "optimize", clock=lambda: float(next(ticks)))
    assert assigned == {
        "enabled": True,
        "reason": None,
        "note": None,
        "warnings": [],
        "cost": {"stateful": 2, "stateless": 0},
        "cross_rack": {"active": 0, "standby": 0},
        "certificate": {"stateful": {"lower_bound": 2, "moved": 2}, "stateless": {"lower_bound": 0, "moved": 0}},
        "probing_rebalance": False,
        "seconds": 2.0,
        "assignment": {A: {"active": ["0_0", "1_0"], "standby": []}, B: {"active": ["0_1"], "standby": []}},
    }
    assert list(assigned) == [
        *("enabled", "reason", "note", "warnings", "cost"),
        *("cross_rack", "certificate", "probing_rebalance", "seconds", "assignment"),
    ]


def test_a_stateless_task_moves_at_no_cost_whatever_is_configured() -> None:
    document = changed(
        *(put("tasks", at, {"id": f"0_{at}", "stateful": False, "source": [f"in:{at}"]}) for at in (0, 1)),
        put("initial_active", {A: ["0_1", "1_0"], B: ["0_0"]}),
        put("config", {"strategy": "min_traffic", "traffic_cost": 10, "non_overlap_cost": 100}),
        drop("initial_standby"),
    )
    assigned = assign(document, "optimize")
    assert (assigned["cost"]["stateless"], assigned["certificate"]["stateless"]["moved"]) == (0, 2)


def test_off_the_initial_assignment_stays_with_its_cost_and_the_reason() -> None:
    assigned = assign(changed(put("config", {}), drop("initial_standby")), "optimize")
    assert (assigned["enabled"], assigned["reason"]) == (False, "rack.aware.assignment.strategy is none")
    assert assigned["assignment"][A]["active"] == ["0_0", "1_0"]
    assert assigned["cost"] == {"stateful": 0, "stateless": 0}
    assert assigned["certificate"] == {"stateful": None, "stateless": None}


def test_an_unknown_cost_is_null() -> None:
    assigned = assign(changed(put("clients", 1, "rack", None)), "optimize")
    assert assigned["cost"] == {"stateful": None, "stateless": None}
    assert assigned["cross_rack"] == {"active": None, "standby": None}


def test_a_client_without_a_rack_is_warned_of_where_rack_awareness_is_configured() -> None:
    rackless = changed(put("clients", 1, "rack", None))
    for assignor in ("optimize", "high-availability", "sticky"):
        assigned = assign(rackless, assignor)
        assert assigned["reason"] == f"client {B} has no client.rack; set it on every consumer"
        assert assigned["warnings"] == [f"rack awareness is off for every client: {assigned['reason']}"]
    for off in (put("config", "strategy", "none"), put("config", "enabled", False)):
        off(rackless)
        assert assign(rackless, "optimize")["warnings"] == []


def test_every_client_without_one_rack_is_warned_of() -> None:
    several = changed(
        drop_rack(0), put("clients", 0, "consumers", {"a": "r1", "b": "r2"}), put("clients", 1, "rack", "")
    )
    assert assign(several, "optimize")["warnings"] == [
        f"rack awareness is off for every client: client {A}: its consumers differ in client.rack; set the same on all of them",
        f"rack awareness is off for every client: client {B} has no client.rack; set it on every consumer",
    ]


def drop_rack(client: int) -> Change:
    return lambda document: document["clients"][client].pop("rack")


TAGS_HAVE_NO_EFFECT = (
    "rack.aware.assignment.tags has no effect: the sticky assignor, as Kafka's, places standbys by load and by where they "
    "were; choose high-availability to spread them by tags"
)


@pytest.mark.slow
def test_under_the_sticky_assignor_tags_have_no_effect_and_the_output_says_so() -> None:
    """As in Kafka, whose LegacyStickyTaskAssignor has its own way to place standbys."""
    for seed in range(20):
        document = problem(Random(seed), "none", standbys=1, tags=("zone",))
        untagged = {**document, "config": {**document["config"], "rack_aware_assignment_tags": []}}
        tagged = assign(document, "sticky")
        assert tagged["assignment"] == assign(untagged, "sticky")["assignment"]
        assert tagged["warnings"] == [TAGS_HAVE_NO_EFFECT]
        for other in ("high-availability", "optimize"):
            assert TAGS_HAVE_NO_EFFECT not in assign(document, other)["warnings"]
        alone = {**document, "config": {**document["config"], "num_standbys": 0}}
        assert assign(alone, "sticky")["warnings"] == []


def test_a_warning_of_tags_and_racks_that_differ_says_which_of_them_counts() -> None:
    document = changed(
        put("config", "rack_aware_assignment_tags", ["rack"]),
        put("clients", 0, "tags", {"rack": "r1"}),
        put("clients", 1, "tags", {"rack": "r3"}),
    )
    differ = f"client {B}: client.tag.rack is r3, but client.rack is r2; "
    assert assign(document, "high-availability")["warnings"] == [differ + "standbys follow the tag"]
    assert assign(document, "sticky")["warnings"] == [TAGS_HAVE_NO_EFFECT, differ + "only client.rack counts"]


def test_equal_costs_are_noted_and_move_no_task() -> None:
    everywhere = {name: ["r1", "r2"] for name in GOOD["partitions"]}
    assigned = assign({**CROSSED, "partitions": everywhere}, "optimize")
    assert (assigned["enabled"], assigned["note"]) == (True, "equal-cost")
    assert assigned["certificate"]["stateful"]["moved"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["min_traffic", "balance_subtopology"])
@pytest.mark.parametrize("assignor", ["optimize", "high-availability", "sticky"])
def test_where_costs_are_equal_no_strategy_moves_a_task(assignor: str, strategy: str) -> None:
    """KIP-925, section 6: rack awareness is used only where the cost of some partition differs. Without it: the same tasks."""
    for seed in range(40):
        document = problem(Random(seed), strategy, standbys=seed % 3)
        racks = sorted({client["rack"] for client in document["clients"]})
        # In every rack, or in one without clients: no partition costs anything, or each the same everywhere.
        document["partitions"] = dict.fromkeys(document["partitions"], racks if seed % 2 else ["elsewhere"])
        assigned = assign(document, assignor)
        unaware = assign({**document, "config": {**document["config"], "strategy": "none"}}, assignor)
        assert assigned["note"] == "equal-cost"
        assert assigned["assignment"] == unaware["assignment"], seed
        assert [proof["moved"] for proof in assigned["certificate"].values()] == [0, 0]
        for kind in ("stateful", "stateless"):
            assert assigned["certificate"][kind]["lower_bound"] == assigned["cost"][kind] == unaware["cost"][kind], seed


def test_an_empty_topology_has_an_empty_assignment() -> None:
    empty = {**GOOD, "tasks": [], "initial_active": {}, "initial_standby": {}, "partitions": {}}
    for assignor in ("optimize", "high-availability", "sticky"):
        assigned = assign(empty, assignor)
        assert assigned["assignment"] == {A: {"active": [], "standby": []}, B: {"active": [], "standby": []}}
        assert assigned["cost"]["stateful"] == 0


def test_an_unknown_assignor_is_refused_by_name() -> None:
    with pytest.raises(
        UsageError, match=r"^assignor 'best' is unknown; choose among optimize, high-availability, sticky$"
    ):
        assign(GOOD, "best")


def test_an_unknown_option_is_refused_by_name() -> None:
    with pytest.raises(UsageError) as refused:
        options_named("magic")
    assert (
        str(refused.value)
        == "option 'magic' is unknown; choose among floating-quotas, joint-standbys, partition-weights, previous-overlap, "
        "rack-spread-standbys"
    )


def test_optimize_needs_something_to_improve() -> None:
    with pytest.raises(
        InvalidProblem, match=r"^problem: initial_active is missing; add it, or choose another --assignor$"
    ):
        assign(changed(drop("initial_active")), "optimize")


def two_clients(owners: tuple[list[int], list[int]], stateful: bool, rack: dict[int, str], strategy: str) -> Document:
    """Clients in racks r1 and r2 that hold tasks by number; task n reads one partition, which is in rack[n]."""
    return {
        "config": {"strategy": strategy},
        "clients": [{"process_id": A, "rack": "r1", "threads": 1}, {"process_id": B, "rack": "r2", "threads": 1}],
        "tasks": [
            {
                "id": f"{n // 4}_{n % 4}",
                "stateful": stateful,
                "source": [f"in:{n}"],
                "changelog": [f"log:{n}"] * stateful,
            }
            for n in sorted(rack)
        ],
        "partitions": {f"{topic}:{n}": [rack[n]] for topic in ("in", "log") for n in rack},
        "initial_active": {
            process_id: [f"{n // 4}_{n % 4}" for n in held] for process_id, held in zip((A, B), owners, strict=True)
        },
    }


@pytest.mark.parametrize(("stateful", "far", "moved"), [(True, 10, 1), (False, 1, 0)])
def test_by_default_a_partition_across_racks_costs_10_and_a_move_1_and_without_state_1_and_0(
    stateful: bool, far: int, moved: int
) -> None:
    """One partition in the rack of no client, and two tasks that swap clients to be in the rack of theirs."""
    assigned = assign(
        two_clients(([1, 2], [0]), stateful, {0: "r1", 1: "r2", 2: "elsewhere"}, "min_traffic"), "optimize"
    )
    assert assigned["cost"] == {"stateful": 0, "stateless": 0} | {
        "stateful" if stateful else "stateless": far + 2 * moved
    }
    assert assigned["cross_rack"]["active"] == 1


@pytest.mark.parametrize(("strategy", "cost"), [("min_traffic", 4), ("balance_subtopology", 6)])
def test_stateless_tasks_are_spread_too_where_that_is_the_strategy(strategy: str, cost: int) -> None:
    """Sub-topology 0 reads in rack r1 alone, sub-topology 1 in the rack of no client; each is spread evenly or not."""
    rack = dict.fromkeys(range(4), "r1") | dict.fromkeys(range(4, 8), "elsewhere")
    assigned = assign(two_clients(([0, 2, 4, 6], [1, 3, 5, 7]), False, rack, strategy), "optimize")
    assert assigned["cost"]["stateless"] == cost


def test_weights_move_the_heavy_partition_to_its_rack() -> None:
    """Two tasks read in rack r1, which has capacity for one: the one with more to read."""
    document: dict[str, Any] = changed(drop("initial_standby"), put("partitions", "in:1", ["r1"]))
    document["partition_weights"] = {"in:0": 1, "in:1": 9, "mid:0": 1, "log:0": 1, "log:1": 1}
    unweighted = assign(document, "optimize")
    weighted = assign(document, "optimize", options_named("partition-weights"))
    assert unweighted["assignment"][A]["active"] == ["0_0", "1_0"]
    assert weighted["assignment"][A]["active"] == ["0_1", "1_0"]
    # cross_rack counts partitions, whatever their weight.
    assert unweighted["cross_rack"]["active"] == weighted["cross_rack"]["active"] == 1


PREVIOUS_CLIENTS: Document = {
    "config": {"strategy": "min_traffic", "acceptable_recovery_lag": 2**63 - 1},
    "clients": [
        {"process_id": A, "rack": "r1", "threads": 1, "prev_active": ["0_1"]},
        {"process_id": B, "rack": "r1", "threads": 1, "prev_active": ["0_0"]},
        {"process_id": C, "rack": "r2", "threads": 1},
    ],
    "tasks": [{"id": f"0_{n}", "stateful": True, "source": [f"in:{n}"]} for n in range(3)],
    "partitions": {"in:0": ["r1"], "in:1": ["r1"], "in:2": ["r2"]},
    "initial_active": {A: ["0_0"], B: ["0_1"], C: ["0_2"]},
}
"""No partition crosses racks wherever the two tasks of rack r1 are; they ran the other way round."""


@pytest.mark.parametrize("assignor", ["optimize", "high-availability"])
def test_tasks_stay_where_they_ran_under_the_option_of_previous_overlap(assignor: str) -> None:
    plain = assign(PREVIOUS_CLIENTS, assignor)
    assert [held["active"] for held in plain["assignment"].values()] == [["0_0"], ["0_1"], ["0_2"]]
    assigned = assign(PREVIOUS_CLIENTS, assignor, options_named("previous-overlap"))
    assert [held["active"] for held in assigned["assignment"].values()] == [["0_1"], ["0_0"], ["0_2"]]
    assert assigned["cost"]["stateful"] == 0
    assert assigned["certificate"]["stateful"] == {"lower_bound": 0, "moved": 0}


@given(
    st.integers(0, 2**32),
    st.sampled_from(["min_traffic", "balance_subtopology"]),
    st.sampled_from(["optimize", "high-availability", "sticky"]),
)
def test_previous_overlap_never_costs_more_against_the_previous_assignment_and_keeps_the_quotas(
    seed: int, strategy: str, assignor: str
) -> None:
    rng = Random(seed)
    document = problem(rng, strategy)
    document["config"] |= {"acceptable_recovery_lag": 2**63 - 1, "traffic_cost": 2, "non_overlap_cost": 3}
    ran = {task for client in document["clients"] for task in client["prev_active"]}
    for task in document["tasks"]:
        if task["id"] not in ran:
            rng.choice(document["clients"])["prev_active"].append(task["id"])
    plain, assigned = assign(document, assignor), assign(document, assignor, options_named("previous-overlap"))
    assert assigned["cost"]["stateful"] <= _cost_against_previous(document, plain)
    if assigned["note"] is None:
        assert assigned["cost"]["stateful"] == _cost_against_previous(document, assigned)
    assert [len(held["active"]) for held in assigned["assignment"].values()] == [
        len(held["active"]) for held in plain["assignment"].values()
    ]


def _cost_against_previous(document: Document, assigned: Document) -> int:
    """Counted by hand: 2 for each partition across racks, 3 for each stateful task that has left its client."""
    sources = {task["id"]: task["source"] for task in document["tasks"] if task["stateful"]}
    return sum(
        2 * sum(client["rack"] not in document["partitions"][source] for source in sources[task])
        + 3 * (task not in client["prev_active"])
        for client in document["clients"]
        for task in assigned["assignment"][client["process_id"]]["active"]
        if task in sources
    )


def test_a_task_that_moves_onto_its_standby_swaps_roles_with_it() -> None:
    swapped = changed(
        put("initial_active", {A: ["0_1", "1_0"], B: ["0_0"]}), put("initial_standby", {A: ["0_0"], B: ["0_1"]})
    )
    assigned = assign(swapped, "optimize")
    assert assigned["assignment"] == {
        A: {"active": ["0_0", "1_0"], "standby": ["0_1"]},
        B: {"active": ["0_1"], "standby": ["0_0"]},
    }


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    rng = Random(draw(st.integers(0, 2**32)))
    return with_standbys(rng, problem(rng, draw(st.sampled_from(["min_traffic", "balance_subtopology"]))))


@given(documents(), st.frozensets(st.sampled_from([Beyond.JOINT_STANDBYS, Beyond.FLOATING_QUOTAS])))
def test_no_option_beyond_kafka_raises_the_cost_of_active_tasks_or_makes_an_assignment_invalid(
    document: dict[str, Any], beyond: frozenset[Beyond]
) -> None:
    plain, assigned = assign(document, "optimize"), assign(document, "optimize", Options(beyond))
    assert assigned["cost"]["stateful"] <= plain["cost"]["stateful"]
    assert assigned["cost"]["stateless"] <= plain["cost"]["stateless"]
    held = assigned["assignment"].values()
    assert sorted(task for client in held for task in client["active"]) == sorted(
        task["id"] for task in document["tasks"]
    )
    assert all(not set(client["active"]) & set(client["standby"]) for client in held)


@given(documents())
def test_joint_standbys_never_cost_more_than_pairs(document: dict[str, Any]) -> None:
    pairs = assign(document, "optimize")["cost"]["standby"]
    assert assign(document, "optimize", options_named("joint-standbys"))["cost"]["standby"] <= pairs


@pytest.mark.parametrize("assignor", ["optimize", "high-availability", "sticky"])
@pytest.mark.parametrize("strategy", ["none", "min_traffic"])
@pytest.mark.parametrize("tags", [(), ("zone",)])
@pytest.mark.parametrize("racks", [True, False])
def test_an_option_that_changes_nothing_is_warned_of_and_no_other(
    assignor: str, strategy: str, tags: tuple[str, ...], racks: bool
) -> None:
    """Over many problems: what is warned of changes none of them, and what is not changes some."""
    warned, changing = set[Beyond](), set[Beyond]()
    for option, seed in product(set(Beyond) - {Beyond.PARTITION_WEIGHTS}, range(at_depth(check=5, test=10, soak=20))):
        rng = Random(seed)
        document = with_standbys(rng, problem(rng, strategy, tags=tags))
        if not racks:
            document["clients"][-1]["rack"] = None
        plain, assigned = (
            assign(document, assignor, Options(beyond)) for beyond in (frozenset[Beyond](), frozenset({option}))
        )
        more = [line for line in assigned["warnings"] if line not in plain["warnings"]]
        if any(line.startswith(f"option {option} has no effect: ") for line in more):
            warned.add(option)
        if assigned["assignment"] != plain["assignment"]:
            changing.add(option)
    assert not warned & changing
    if strategy == "none" or not racks:
        assert warned >= {Beyond.JOINT_STANDBYS, Beyond.FLOATING_QUOTAS, Beyond.PREVIOUS_OVERLAP}
    if strategy != "none" and racks:
        of_sticky = {Beyond.RACK_SPREAD_STANDBYS} if assignor == "sticky" or tags else set[Beyond]()
        assert warned == of_sticky
        assert Beyond.FLOATING_QUOTAS in changing
