"""Automatic creation while only some brokers have a rack (KIP-36): placed as if none had one, under every placer."""

from collections.abc import Sequence
from random import Random

import pytest

from rackspan.cluster.core.admin_messages import CreateTopics, NewTopic
from rackspan.cluster.core.controller import ControllerCore
from rackspan.cluster.core.ids import CLIENT
from rackspan.cluster.core.settings import ClusterSettings
from tests.cluster.core.controller.test_placement_vectors import register, rows

NO_RACKS = (None,) * 6
PARTLY: Sequence[str | None] = ("a", "a", "a", "b", "b", None)
WHOLLY: Sequence[str | None] = ("a", "a", "a", "b", "b", "b")
PLACERS = ["striped", "rack-alternated", "balanced", "tests.cluster.core.controller.admin.first_of_each_rack:Placer"]


def placed(placer: str, racks: Sequence[str | None], *, automatic: bool) -> list[list[int]]:
    """Twelve partitions of two replicas, by the same random numbers whatever the racks."""
    controller = ControllerCore(ClusterSettings(extra_configs={"replica.placer.class.name": placer}), Random(7))
    for number, rack in enumerate(racks):
        register(controller, number, rack)
    controller.on_message(0, CLIENT, CreateTopics(1, (NewTopic("orders", 12, 2),), automatic=automatic))
    return rows(controller, "orders")


@pytest.mark.parametrize("placer", PLACERS)
def test_with_partial_racks_the_placement_is_that_of_brokers_without_racks(placer: str) -> None:
    assert placed(placer, PARTLY, automatic=True) == placed(placer, NO_RACKS, automatic=True)


@pytest.mark.parametrize("placer", PLACERS)
def test_with_all_racks_known_the_placement_is_that_of_an_operator_and_differs(placer: str) -> None:
    by_rack = placed(placer, WHOLLY, automatic=True)
    assert by_rack == placed(placer, WHOLLY, automatic=False)
    assert by_rack != placed(placer, NO_RACKS, automatic=True)
    assert all(len({WHOLLY[broker] for broker in row}) == 2 for row in by_rack)


def test_an_operators_topic_is_placed_by_the_racks_that_are_known() -> None:
    """As in Kafka, whose striped placer gives the brokers without a rack a rack of their own."""
    by_hand = placed("striped", PARTLY, automatic=False)
    assert by_hand != placed("striped", NO_RACKS, automatic=False)
    assert all(len({PARTLY[broker] for broker in row}) == 2 for row in by_hand)
