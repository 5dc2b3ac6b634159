"""Names of topics, their configs as numbers and in order, and configs that are lists."""

import pytest

from rackspan.errors import InvalidSnapshot
from rackspan.model.ids import TopicName
from rackspan.model.topic import AUDITED_CONFIGS, GATEWAY_CONFIG_TOPIC, MIN_INSYNC_RACKS, Topic, parse_config_list

ORDERS = TopicName("orders")


def test_a_topic_that_is_only_named_is_not_internal_and_has_no_id_or_config() -> None:
    assert Topic(ORDERS) == Topic(ORDERS, topic_id=None, internal=False, config={})


@pytest.mark.parametrize("name", ["a", "a" * 249, "...", ".a", "A.b_c-9", "-"])
def test_a_name_that_kafka_allows_is_one(name: str) -> None:
    assert Topic(TopicName(name)).name == name


@pytest.mark.parametrize("name", ["", "a" * 250, ".", "..", "a b", "ä", "a\n"])
def test_a_name_that_kafka_refuses_is_refused(name: str) -> None:
    with pytest.raises(InvalidSnapshot, match="Kafka allows 1 to 249 letters"):
        Topic(TopicName(name))


def test_configs_are_in_the_order_of_their_names_and_a_copy() -> None:
    given = {"retention.ms": "1", "cleanup.policy": "delete"}
    topic = Topic(ORDERS, config=given)
    given["a"] = "1"
    assert list(topic.config.items()) == [("cleanup.policy", "delete"), ("retention.ms", "1")]


def test_configs_and_the_gateways_topic_have_these_names() -> None:
    assert AUDITED_CONFIGS == (
        "min.insync.replicas",
        "min.insync.racks",
        "unclean.leader.election.enable",
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "diskless.enable",
        "inkless.enable",
    )
    assert GATEWAY_CONFIG_TOPIC == "__rackspan_configs"


def test_a_minimum_is_a_whole_number_and_1_where_it_is_not_set() -> None:
    assert Topic(ORDERS, config={"min.insync.racks": "2"}).config_number(MIN_INSYNC_RACKS) == 2
    assert Topic(ORDERS, config={"min.insync.racks": "999999999"}).config_number(MIN_INSYNC_RACKS) == 999_999_999
    assert Topic(ORDERS, config={"min.insync.racks": "1"}).config_number(MIN_INSYNC_RACKS) == 1
    assert Topic(ORDERS).config_number(MIN_INSYNC_RACKS) == 1


@pytest.mark.parametrize("key", ["min.insync.replicas", "min.insync.racks"])
@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "1000000000", "٣", "2 "])
def test_a_minimum_that_is_no_whole_number_of_at_least_1_is_refused(key: str, text: str) -> None:
    with pytest.raises(InvalidSnapshot) as refused:
        Topic(ORDERS, config={key: text})
    assert str(refused.value) == (
        f"topic 'orders': {key} is {text!r}, expected a whole number of at least 1; fix it in the snapshot"
    )


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", ()),
        ("  ", ()),
        ("delete", ("delete",)),
        (" delete ,\tcompact ", ("delete", "compact")),
        ("a,a", ("a", "a")),
        ("compact,", ("compact", "")),
        (",", ("", "")),
    ],
)
def test_a_config_list_is_split_as_kafkas_config_def_does(text: str, items: tuple[str, ...]) -> None:
    assert parse_config_list(text) == items


def test_a_topic_is_diskless_by_either_name_of_the_config() -> None:
    for key in ("diskless.enable", "inkless.enable"):
        assert Topic(ORDERS, config={key: "true"}).diskless
        assert not Topic(ORDERS, config={key: "false"}).diskless
    assert not Topic(ORDERS).diskless
