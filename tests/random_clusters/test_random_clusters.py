"""Every command on random clusters with each state that Kafka can report, judged by plain loops; and the judges on planted faults."""

import os
from collections import Counter
from importlib import import_module
from random import Random
from typing import Any

import numpy as np
import pytest

from rackspan.acks import HardenAdvice
from rackspan.audit.constraints import remedies
from rackspan.restart import planner, safe
from tests.random_clusters.judged import JUDGES
from tests.random_clusters.states import STATES, random_cluster
from tests.random_clusters.trials import Fault, smallest, trial

CLUSTERS = {
    "audit and outage": 250,
    "restart safe": 60,
    "restart plan": 40,
    "reassign plan and lint": 80,
    "remedies": 60,
    "remedies to their end": 50,
    "advise": 30,
    "acks harden": 200,
}
"""How many in make test: each judge takes one or two seconds of a processor."""

SOAK, AT_ONCE = 20_000, 1_000


def report(found: list[Fault]) -> str:
    return "\n".join(map(str, found[:20]))


@pytest.mark.slow
@pytest.mark.parametrize("name", JUDGES)
def test_what_a_command_says_of_random_clusters_is_true_and_can_be_followed(name: str) -> None:
    found = list(trial(name, range(CLUSTERS[name])))
    assert not found, report(found)


@pytest.mark.soak
@pytest.mark.skipif("RACKSPAN_SOAK" not in os.environ, reason="RACKSPAN_SOAK=1 runs it")
@pytest.mark.parametrize("first", [seed + part for seed in (10**6, 10**7, 10**8) for part in range(0, SOAK, AT_ONCE)])
@pytest.mark.parametrize("name", JUDGES)
def test_what_a_command_says_of_twenty_thousand_clusters_of_three_seeds_holds(name: str, first: int) -> None:
    found = list(trial(name, range(first, first + AT_ONCE)))
    assert not found, report(found)


def test_each_state_comes_about_and_a_third_of_the_clusters_has_none() -> None:
    found = Counter(name for seed in range(600) for name in random_cluster(Random(seed)).states or ["none"])
    assert {state.name for state in STATES} | {"none"} == found.keys()
    assert 150 < found["none"] < 300


def test_a_cluster_without_a_state_is_in_sync_and_spread_as_evenly_as_brokers_allow() -> None:
    for cluster in (random_cluster(Random(seed)) for seed in range(200)):
        racks = {broker["id"]: broker["rack"] for broker in cluster.brokers}
        for _, row in cluster.partitions() if not cluster.states else ():
            held = Counter(racks[broker] for broker in row["replicas"])
            open_racks = [rack for rack, size in Counter(racks.values()).items() if held[rack] < size]
            assert row["isr"] == row["replicas"]
            assert all(max(held.values()) <= held[rack] + 1 for rack in open_racks)


def nothing(*_: object) -> tuple[()]:
    return ()


def no_one_under(in_sync: Any, *_: object) -> tuple[Any, Any]:
    return np.zeros(len(in_sync), dtype=np.bool_), np.zeros(len(in_sync), dtype=np.bool_)


PLANTED = {
    "a loss is not counted against the minimums": (
        "audit and outage",
        import_module("rackspan.audit.outage"),
        "under_minimum",
        no_one_under,
    ),
    "the quorum is not counted": ("restart safe", safe, "voters_left", lambda *_: None),
    "brokers that are down are waited for": ("remedies", remedies, "_before_its_end", lambda *_: ""),
    "targets that do not survive are not found": (
        "reassign plan and lint",
        import_module("rackspan.reassign.lint"),
        "_not_survived",
        nothing,
    ),
    "the order of batches is turned round": (
        "restart plan",
        planner,
        "_ordered",
        lambda *given, ordered=planner._ordered: ordered(*given)[::-1],
    ),
    "each value is set at once": ("acks harden", HardenAdvice, "to_set", property(lambda _advice: True)),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, owner, attribute, planted = PLANTED[fault]
    for seed in range(CLUSTERS[name]):
        with monkeypatch.context() as patched:
            patched.setattr(owner, attribute, planted)
            found = {one.words for one in trial(name, [seed])}
        if found and found - {one.words for one in trial(name, [seed])}:
            return
    raise AssertionError(f"{name}: nothing is found though {fault}")


@pytest.mark.slow
def test_the_smallest_cluster_of_a_fault_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remedies, "_before_its_end", lambda *_: "")
    fault = next(trial("remedies", range(CLUSTERS["remedies"])))
    least = smallest(fault)
    assert len(least.document["topics"]) <= 1
    assert list(JUDGES["remedies"](least))
