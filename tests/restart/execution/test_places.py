"""The places of brokers in ISRs, and the partitions that another broker leads."""

from rackspan.model import TopicPartition
from rackspan.restart.execution.places import (
    IsrPlaces,
    MissingPlaces,
    is_up,
    isr_places,
    missing_places,
    preferred_elsewhere,
)
from tests.restart.execution.snapshots import cluster


def test_the_places_of_each_broker_are_by_topic_in_the_order_of_ids() -> None:
    places = isr_places(cluster(isr={("orders", 2): (2, 3)}), (4, 1, 99))
    assert places == {1: {"logs": (0,), "orders": (0,)}, 4: {"orders": (1, 3)}, 99: {}}
    assert list(places) == [1, 4, 99]


def test_places_not_regained_are_counted_and_the_first_partition_is_named() -> None:
    places: IsrPlaces = {4: {"orders": (1, 3)}, 1: {"logs": (0,), "orders": (0, 2)}}
    lagging = cluster(isr={("orders", 1): (5, 6), ("logs", 0): (3, 2), ("orders", 2): (2, 3)})
    assert missing_places(lagging, places) == MissingPlaces(5, 3, "logs-0")
    assert missing_places(lagging, {4: {"orders": (1, 3)}}) == MissingPlaces(2, 1, "orders-1")
    assert missing_places(cluster(), places) == MissingPlaces(5, 0, "")


def test_a_place_of_another_topic_or_partition_is_not_missing() -> None:
    lagging = cluster(isr={("orders", 0): (2, 3)})
    assert missing_places(lagging, {1: {"logs": (0,), "orders": (2,)}}) == MissingPlaces(2, 0, "")


def test_a_broker_is_up_if_it_is_listed_and_not_fenced() -> None:
    snapshot = cluster(gone=(1,), fenced=(2,))
    assert [is_up(snapshot, broker) for broker in (1, 2, 3)] == [False, False, True]


def test_a_partition_is_led_elsewhere_if_its_first_replica_is_in_sync_and_follows() -> None:
    led = cluster(
        leaders={("orders", 0): 2, ("orders", 1): 5, ("logs", 0): 1, ("orders", 2): 3}, isr={("orders", 1): (5, 6)}
    )
    assert preferred_elsewhere(led, (1, 3, 4)) == (TopicPartition("logs", 0), TopicPartition("orders", 0))
    assert preferred_elsewhere(cluster(), (1, 2, 3)) == ()
