"""`balanced` beside Kafka's placers and a load-aware one, scenario by scenario; the judge is `audit`."""

import numpy as np
import pytest

from rackspan.audit import RackPolicy, audit
from rackspan.audit.loads import replica_bound
from rackspan.model.racks import rack_map
from tests.placement.load_aware import least_most_leaders, load_aware
from tests.placement.scenarios_of_load import SEVERAL_PHASES, SINGLE_PHASE, MinMax, Phase, Scenario, min_max, placed
from tests.placement.snapshots import registered, snapshot_of

ONE_RACK_GROWN = "3/3/3, +3 brokers in one rack"


@pytest.mark.parametrize(
    "scenario", [one for one in (*SINGLE_PHASE, *SEVERAL_PHASES) if one.phases[0].partitions < 10_000], ids=str
)
def test_the_peers_column_is_what_its_program_computes(scenario: Scenario) -> None:
    assert load_aware(scenario.phases, scenario.replication_factor) == scenario.load_aware


pytestmark = pytest.mark.slow

LEVELS = [(one, "topic") for one in SINGLE_PHASE] + [
    (one, "cluster") for one in SINGLE_PHASE if 1 < one.phases[0].topics <= 100
]
"""Both ways of levelling give the same for one topic."""


@pytest.mark.parametrize(("scenario", "level"), LEVELS, ids=str)
def test_leaders_are_level_and_replicas_at_their_bound(scenario: Scenario, level: str) -> None:
    phase, *_ = scenario.phases
    leaders, replicas = min_max(scenario, placed(scenario, level=level))
    partitions = phase.topics * phase.partitions
    assert leaders == (partitions // len(phase.brokers), -(-partitions // len(phase.brokers)))
    assert replicas[1] == _bound(phase, partitions, scenario.replication_factor)
    assert _no_wider(replicas, scenario.load_aware[1])


@pytest.mark.parametrize("scenario", [one for one in SEVERAL_PHASES if one.name != ONE_RACK_GROWN], ids=str)
def test_after_growth_and_loss_no_worse_than_a_placer_that_reorders_all_leaders(scenario: Scenario) -> None:
    leaders, replicas = min_max(scenario, placed(scenario, level="cluster"))
    assert _no_wider(leaders, scenario.load_aware[0])
    assert _no_wider(replicas, scenario.load_aware[1])


def test_growth_in_one_rack_meets_the_first_goal_and_the_bound_of_the_second() -> None:
    """Old brokers of the grown rack lack 67 leaders each. Without reordering what stands, that is 67 replicas more."""
    scenario = _named(ONE_RACK_GROWN)
    leaders, replicas = min_max(scenario, placed(scenario, level="cluster"))
    assert leaders == scenario.load_aware[0] == (200, 200)
    assert replicas == (333, 800)
    assert replicas[1] == scenario.load_aware[1][1]


def test_growth_in_one_rack_with_replicas_first_is_no_worse_once_leaders_are_reordered_as_freely() -> None:
    scenario = _named(ONE_RACK_GROWN)
    rows = np.concatenate(placed(scenario, first_goal="replicas", level="cluster"))
    assert min_max(scenario, [rows])[1] == scenario.load_aware[1]
    assert least_most_leaders(rows.tolist(), range(len(scenario.phases[-1].brokers))) == scenario.load_aware[0]


@pytest.mark.parametrize(
    ("scenario", "level"),
    [*LEVELS, *((one, "cluster") for one in SEVERAL_PHASES), (SEVERAL_PHASES[0], "topic")],
    ids=str,
)
def test_audit_finds_no_broken_spread(scenario: Scenario, level: str) -> None:
    for phase, rows in zip(scenario.phases, placed(scenario, level=level), strict=True):
        found = audit(snapshot_of(phase.brokers, rows), RackPolicy()).findings
        assert [one for one in found if one.constraint == "rack-spread"] == []


def _bound(phase: Phase, partitions: int, replication_factor: int) -> int:
    by_replication_factor = np.bincount([replication_factor], weights=[partitions]).astype(np.int64)
    return replica_bound(rack_map(registered(phase.brokers)), by_replication_factor)


def _no_wider(ours: MinMax, theirs: MinMax) -> bool:
    return ours[0] >= theirs[0] and ours[1] <= theirs[1]


def _named(name: str) -> Scenario:
    return next(one for one in SEVERAL_PHASES if one.name == name)
