"""By whose policy an hour was made; what making hours again finds is in test_check.py."""

import json

from rackspan.audit import FleetPolicy, RackPolicy
from rackspan.pipeline.hours.again import _by_same_policy
from rackspan.pipeline.policies import policies_document
from rackspan.pipeline.runs import Run
from tests.pipeline.examples import NOON


def test_an_hour_is_of_the_policy_in_force_where_its_cluster_has_had_no_other() -> None:
    plain, fleet = RackPolicy(), FleetPolicy(RackPolicy(), {"b": RackPolicy(min_insync_racks=2)})
    run = Run(2, "2", "run", NOON, NOON, policies_document(plain), {}, {})
    policies = {"1": json.dumps(policies_document(fleet)), "2": json.dumps(policies_document(plain))}
    assert [_by_same_policy(run, policies, written_by, "b") for written_by in ("1", "2", None)] == [False, True, False]
    assert all(_by_same_policy(run, policies, written_by, "a") for written_by in ("1", "2", None))
