"""What a running group costs; the oracle counts by plain loops over the captured document."""

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rackspan.streams import audit_group, capture_group, could_read_less, streams_group
from tests.depth import examples
from tests.streams.groups import cluster, described, member

Document = Any
A_QUARTER = examples(0.25)
"""Each example is four assignments."""
RACKS = ("r1", "r2", "r3")


def audited(rng: Random, racks: tuple[str | None, ...] = RACKS) -> tuple[Document, Document]:
    """A random group of 2-6 clients, its audit and its captured problem."""
    partitions = rng.randint(2, 9)
    topics = {name: [[rng.randint(1, 3)] for _ in range(partitions)] for name in ("orders", "shop-s-changelog")}
    topics["clicks"] = [[rng.randint(1, 3)] for _ in range(partitions + 1)]
    clients = rng.randint(2, 6)
    held: list[Document] = [{"active": {}, "standby": {}} for _ in range(clients)]
    for at in range(partitions):
        owner, other = rng.sample(range(clients), 2)
        held[owner]["active"][f"0_{at}"] = [f"orders:{at}"]
        held[other]["standby"][f"0_{at}"] = [f"orders:{at}"]
    for at in range(partitions + 1):
        held[rng.randrange(clients)]["active"][f"1_{at}"] = [f"clicks:{at}"]
    members = [member(f"c{at}", process=at + 1, rack=rng.choice(racks), **roles) for at, roles in enumerate(held)]
    group = streams_group(described(*members))
    captured = capture_group(group, cluster(topics), {})
    return audit_group(group, captured), captured.document


def by_hand(problem: Document) -> dict[str, int]:
    tasks = {task["id"]: task for task in problem["tasks"]}

    def crossing(role: str, key: str) -> int:
        return sum(
            next(iter(client["consumers"].values())) not in problem["partitions"][partition]
            for client in problem["clients"]
            for task in client[role]
            for partition in tasks[task][key]
        )

    return {"active": crossing("prev_active", "source"), "standby": crossing("prev_standby", "changelog")}


@A_QUARTER
@given(st.integers(0, 2**32))
def test_now_equals_a_count_by_loops_and_the_sum_over_clients(seed: int) -> None:
    audit, problem = audited(Random(seed))
    assert audit["now"]["cross_rack"] == by_hand(problem)
    for role in ("active", "standby"):
        assert sum(client["cross_rack"][role] for client in audit["clients"]) == audit["now"]["cross_rack"][role]
        assert sum(client[role] for client in audit["clients"]) == sum(
            len(client[f"prev_{role}"]) for client in problem["clients"]
        )


@A_QUARTER
@given(st.integers(0, 2**32))
def test_min_traffic_is_the_least_of_the_strategies_and_none_is_off(seed: int) -> None:
    audit, _ = audited(Random(seed))
    active = {name: outcome["cross_rack"]["active"] for name, outcome in audit["strategies"].items()}
    assert audit["at_best"]["active"] == active["min_traffic"] <= active["balance_subtopology"]
    assert active["min_traffic"] <= active["none"]
    assert audit["strategies"]["none"]["reason"] == "rack.aware.assignment.strategy is none"


@A_QUARTER
@given(st.integers(0, 2**32))
def test_a_client_without_rack_leaves_the_costs_of_the_others_known(seed: int) -> None:
    audit, _ = audited(Random(seed), (*RACKS, None))
    lacking = [client for client in audit["clients"] if client["rack"] is None]
    assert (audit["now"]["cross_rack"]["active"] is None) == bool(lacking)
    for client in audit["clients"]:
        assert (client["cross_rack"]["active"] is None) == (client["rack"] is None)
    if lacking:
        assert not audit["strategies"]["min_traffic"]["enabled"]
        assert audit["unknown"][0].startswith("active tasks have no price: client 0000")
        assert not could_read_less(audit)


def test_only_a_group_in_other_racks_than_its_partitions_could_be_less() -> None:
    def group(racks: list[str]) -> Document:
        members = [
            member(f"c{at}", process=at + 1, rack=rack, active={f"0_{at}": [f"orders:{at}"]})
            for at, rack in enumerate(racks)
        ]
        found = streams_group(described(*members))
        return audit_group(found, capture_group(found, cluster({"orders": [[1], [2]]}), {}))

    in_place, swapped = group(["r1", "r2"]), group(["r2", "r1"])
    assert (in_place["now"]["cross_rack"]["active"], could_read_less(in_place)) == (0, False)
    assert (swapped["now"]["cross_rack"]["active"], could_read_less(swapped)) == (2, True)
    assert swapped["strategies"]["min_traffic"]["moved"]["active"] == 2


def test_standbys_of_unknown_changelogs_have_no_known_cost_and_do_not_count() -> None:
    found = streams_group(
        described(
            member("a", process=1, rack="r1", active={"0_0": ["orders:0"]}),
            member("b", process=2, rack="r2", standby={"0_0": ["orders:0"]}),
        )
    )
    audit = audit_group(found, capture_group(found, cluster({"orders": [[1]]}), {}))
    assert audit["now"]["cross_rack"] == {"active": 0, "standby": None}
    assert audit["at_best"] == {"active": 0, "standby": None}
    assert [client["cross_rack"]["standby"] for client in audit["clients"]] == [None, None]
    assert not could_read_less(audit)
