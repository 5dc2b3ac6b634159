"""The example must work as it stands: it is what people copy."""

import importlib
from pathlib import Path
from random import Random

import pytest

from rackspan.errors import ReplicaPlacementException
from rackspan.model import BrokerId, RackId
from rackspan.placement import UsableBroker, placer_named
from rackspan.placement.placer import CheckedPlacer

EXAMPLE = Path(__file__).parents[2] / "examples" / "custom_placer.py"
BROKERS = [UsableBroker(BrokerId(broker), RackId("aabb"[broker]), False) for broker in range(4)]


@pytest.fixture
def roomy(monkeypatch: pytest.MonkeyPatch) -> CheckedPlacer:
    monkeypatch.syspath_prepend(EXAMPLE.parent)
    return placer_named("custom_placer:RoomyPlacer", {"roomy.placer.full.brokers": "0"}, Random(1))


def test_replicas_are_on_different_racks_and_not_on_the_full_broker(roomy: CheckedPlacer) -> None:
    rows = [partition.replicas for partition in roomy.place(0, 8, 2, BROKERS)]
    assert all({broker // 2 for broker in row} == {0, 1} for row in rows)
    assert 0 not in {broker for row in rows for broker in row}


def test_the_full_broker_is_used_where_no_other_can_be_had(roomy: CheckedPlacer) -> None:
    assert {tuple(sorted(partition.replicas)) for partition in roomy.place(0, 4, 4, BROKERS)} == {(0, 1, 2, 3)}


def test_too_few_live_brokers_are_refused(roomy: CheckedPlacer) -> None:
    with pytest.raises(ReplicaPlacementException, match="5 replicas need as many live brokers, found 4; add some"):
        roomy.place(0, 1, 5, BROKERS)


def test_the_example_stays_short_and_uses_public_names() -> None:
    text = EXAMPLE.read_text()
    assert len(text.splitlines()) < 40
    imported = [line.split(" import ") for line in text.splitlines() if line.startswith("from rackspan")]
    for module, names in imported:
        interface = importlib.import_module(module.removeprefix("from "))
        public = getattr(interface, "__all__", [name for name in vars(interface) if not name.startswith("_")])
        assert set(names.split(", ")) <= set(public)
