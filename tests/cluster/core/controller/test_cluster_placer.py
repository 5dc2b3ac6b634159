"""KIP-660 in the controller: the placer's life, its failures, and the three scenarios of the text."""

from collections.abc import Mapping, Sequence
from random import Random

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.cluster.core.controller import ControllerCore
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.errors import ReplicaPlacementException, UsageError
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.placement import CheckedPlacer, TopicAssignment, UsableBroker
from tests.cluster.core.controller.test_placement_vectors import by_hand, create, grow, register, rows


class Diary:
    """A placer that writes down what happens to it, and puts everything on the first brokers it is offered."""

    def __init__(self, fails: bool = False) -> None:
        self.pages: list[str] = []
        self._fails = fails

    def configure(self, configs: Mapping[str, str]) -> None:
        self.pages.append(f"configure {configs.get('mine')}")

    def place(self, start: int, count: int, factor: int, brokers: Sequence[UsableBroker]) -> TopicAssignment:
        self.pages.append(f"place {start} {count} {factor} {len(brokers)}")
        if self._fails:
            raise ReplicaPlacementException("no room on any broker; add one")
        return TopicAssignment.of([[one.id for one in brokers[:factor]]] * count)

    def close(self) -> None:
        self.pages.append("close")


def controller_with(diary: Diary, brokers: int = 3) -> ControllerCore:
    def placer_of(configs: Mapping[str, str], _: Random) -> CheckedPlacer:
        placer = CheckedPlacer("diary", diary)
        placer.configure(configs)
        return placer

    settings = ClusterSettings(extra_configs={"mine": "yes", "replica.placer.class.name": "diary"})
    controller = ControllerCore(settings, Random(1), placer_of=placer_of)
    for number in range(brokers):
        register(controller, number, None)
    return controller


def test_a_placer_is_configured_once_called_for_each_topic_alone_and_closed_with_the_controller() -> None:
    diary = Diary()
    controller = controller_with(diary)
    controller.open()
    assert diary.pages == ["configure yes"]
    create(controller, "one", 2, 2)
    create(controller, "two", 1, 1)
    grow(controller, "one", 5)
    controller.close()
    controller.close()
    assert diary.pages == ["configure yes", "place 0 2 2 3", "place 0 1 1 3", "place 2 3 2 3", "close"]
    assert rows(controller, "one") == [[0, 1]] * 5


def test_a_factor_that_cannot_be_reached_never_comes_to_the_placer() -> None:
    diary = Diary()
    assert create(controller_with(diary), "one", 1, 4).error is ErrorCode.INVALID_REPLICATION_FACTOR
    assert diary.pages == []


def test_a_placer_that_finds_no_placement_fails_the_topic_and_nothing_else() -> None:
    controller = controller_with(Diary(fails=True))
    result = create(controller, "one", 1, 1)
    assert (result.error, result.message) == (ErrorCode.REPLICA_PLACEMENT_FAILED, "no room on any broker; add one")
    assert not controller.image.topics


def test_a_cluster_does_not_start_with_a_placer_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="nobody"):
        EmbeddedCluster(1, 1, config={"replica.placer.class.name": "nobody"}).start()


def balanced(**configs: str) -> ControllerCore:
    named = {f"replica.placer.balanced.{key}": value for key, value in configs.items()}
    settings = ClusterSettings(extra_configs={"replica.placer.class.name": "balanced", **named})
    controller = ControllerCore(settings, Random(7))
    for number in range(6):
        register(controller, number, f"r{number % 3}")
    return controller


def held(controller: ControllerCore, *topics: str) -> list[int]:
    """Replicas of the topics by broker, 0 first."""
    replicas = [broker for topic in topics for row in rows(controller, topic) for broker in row]
    return [replicas.count(broker) for broker in sorted(controller.image.brokers)]


def test_a_new_topic_is_spread_over_all_brokers_a_new_one_included() -> None:
    controller = balanced()
    create(controller, "before", 30, 3)
    register(controller, 6, "r0")
    create(controller, "after", 12, 3)
    assert held(controller, "after") == [4, 6, 6, 4, 6, 6, 4]


def test_new_partitions_go_to_a_broker_that_was_added_where_the_cluster_is_levelled() -> None:
    controller = balanced(level="cluster")
    create(controller, "before", 30, 3)
    register(controller, 6, "r0")
    create(controller, "after", 12, 3)
    after = held(controller, "after")
    assert after[6] == max(after)
    assert after[6] > min(after[0], after[3])


def test_no_new_partition_goes_to_a_broker_that_is_to_be_removed() -> None:
    controller = balanced(draining="4")
    create(controller, "orders", 30, 3)
    assert held(controller, "orders")[4] == 0


def test_a_broker_that_holds_much_gets_less_than_the_others_where_the_cluster_is_levelled() -> None:
    controller = balanced(level="cluster")
    for number in range(6):
        # Broker 0 is full of topics of one replica that an operator put there.
        by_hand(controller, f"full-{number}", *[[0]] * 10)
    create(controller, "orders", 30, 3)
    found = held(controller, "orders")
    assert found[0] < found[3]
