"""A rule that judges otherwise than before raises the version of its table, so that the next run makes all of its rows again."""

import hashlib
import json
from dataclasses import replace
from datetime import timedelta

import pytest

from rackspan.audit import RackPolicy
from rackspan.model import RackId, UnrackedPolicy
from rackspan.pipeline.schemas import TABLES
from tests.pipeline import expected
from tests.pipeline.examples import NOON, recorded, small

DIGESTS = {
    ("partition_durability", 3): "392d203eaf83d72f",
    ("findings", 9): "9b13c39fa9a54ef4",
    ("outage_impact", 4): "de3afbc40c56bc51",
    ("drift", 3): "c4cc7e67b8824969",
}
"""By table and version. test_build.py holds Spark's rows equal to those digested here."""

POLICIES = (
    RackPolicy(),
    RackPolicy(UnrackedPolicy.OWN, 2, {"orders": 3}, {101: RackId("a")}),
    RackPolicy(UnrackedPolicy.IGNORE, 3),
)
WORDING = ("reason", "remedy", "schema_version")
"""Columns whose words may change without another verdict."""


def digest(name: str) -> str:
    """Of the rows of recorded snapshots, as if they were one cluster's, under several policies."""
    given = [*recorded(), small(), small(leader=-1)]
    snapshots = [
        replace(one, cluster_id="one", taken_at=NOON + timedelta(hours=hour)) for hour, one in enumerate(given)
    ]
    rows = [
        json.dumps({key: value for key, value in row.items() if key not in WORDING}, sort_keys=True, default=str)
        for policy in POLICIES
        for row in sorted(expected.table(name, snapshots, policy), key=repr)
    ]
    assert len(rows) > 20
    return hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", TABLES)
def test_a_changed_verdict_comes_with_another_version_of_its_table(name: str) -> None:
    version = TABLES[name].version
    assert DIGESTS.get((name, version)) == digest(name), (
        f"the rows of {name} have changed: raise its version in schemas/, so that runs make its old rows again, and put "
        f"({name!r}, VERSION): {digest(name)!r} here"
    )
