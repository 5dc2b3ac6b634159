"""Configs of the balanced placer: each default, each value that cannot be."""

import pytest

from rackspan.errors import ReplicaPlacementException
from rackspan.placement.balanced.settings import BalancedSettings, balanced_settings
from rackspan.placement.rack_modes import RackAwareMode

PREFIX = "replica.placer.balanced."


def test_without_configs_everything_has_its_default() -> None:
    assert balanced_settings({}) == BalancedSettings()
    assert balanced_settings({PREFIX + "leaders": "", PREFIX + "new.preference": " "}) == BalancedSettings()


def test_every_config_is_read() -> None:
    assert balanced_settings(
        {
            "replica.placer.rack.aware": "safe",
            PREFIX + "leaders": "0:12, 1:9",
            PREFIX + "replicas": "0:36,1:30",
            PREFIX + "topic.leaders": "0:2",
            PREFIX + "topic.replicas": "0:4,1:2",
            PREFIX + "weights": "1:0.5",
            PREFIX + "draining": "4, 5",
            PREFIX + "near.capacity": "6",
            PREFIX + "new": "7",
            PREFIX + "new.preference": "0.25",
            PREFIX + "spread.before.liveness": "false",
            PREFIX + "first.goal": "replicas",
            PREFIX + "level": "cluster",
        }
    ) == BalancedSettings(
        rack_aware=RackAwareMode.SAFE,
        leaders={0: 12, 1: 9},
        replicas={0: 36, 1: 30},
        topic_leaders={0: 2},
        topic_replicas={0: 4, 1: 2},
        weights={1: 0.5},
        draining=frozenset({4, 5}),
        near_capacity=frozenset({6}),
        new=frozenset({7}),
        new_preference=0.25,
        spread_first=False,
        leaders_first=False,
        level_cluster=True,
    )


def test_the_topic_is_levelled_unless_new_brokers_are_named() -> None:
    loaded = {PREFIX + "replicas": "0:1"}
    assert not balanced_settings(loaded).level_cluster
    assert balanced_settings({**loaded, PREFIX + "new": "7"}).level_cluster
    with pytest.raises(ReplicaPlacementException, match=r"new is set, but .*level=topic gives every broker its share"):
        balanced_settings({**loaded, PREFIX + "new": "7", PREFIX + "level": "topic"})


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("leaders", "0", "replica.placer.balanced.leaders is '0', expected a list of broker:value, such as 0:12,1:9; fix the config"),
        ("leaders", "a:1", "replica.placer.balanced.leaders is 'a', but it names whole numbers of 0 to 2147483647; fix the config"),
        ("replicas", "0:-1", "replica.placer.balanced.replicas is '-1', but it names whole numbers of 0 to 10000000; fix the config"),
        ("replicas", "0:1,0:1", "replica.placer.balanced.replicas is '0:1,0:1', but it names broker 0 twice; fix the config"),
        ("weights", "0:heavy", "replica.placer.balanced.weights is 'heavy', expected a number, such as 0.5; fix the config"),
        ("weights", "0:nan", "replica.placer.balanced.weights is 'nan', expected a finite number, such as 0.5; fix the config"),
        ("weights", "0:0", "replica.placer.balanced.weights is 0 for broker 0, but a weight is 0.01 to 100; name a broker that shall get nothing in replica.placer.balanced.draining; fix the config"),
        ("draining", "4,,5", "replica.placer.balanced.draining is '', but it names whole numbers of 0 to 2147483647; fix the config"),
        ("near.capacity", "99999999999", "replica.placer.balanced.near.capacity is '99999999999', but it names whole numbers of 0 to 2147483647; fix the config"),
        ("new", "7", "replica.placer.balanced.new is set, but without replica.placer.balanced.replicas no broker is known to be behind; fix the config"),
        ("new.preference", "1.5", "replica.placer.balanced.new.preference is '1.5', expected a number between 0 and 1; fix the config"),
        ("spread.before.liveness", "yes", "replica.placer.balanced.spread.before.liveness is 'yes', expected true or false; fix the config"),
        ("level", "rack", "replica.placer.balanced.level is 'rack', expected topic or cluster; fix the config"),
        ("first.goal", "bytes", "replica.placer.balanced.first.goal is 'bytes', expected leaders or replicas; fix the config"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_is_one_clear_line(key: str, value: str, line: str) -> None:
    with pytest.raises(ReplicaPlacementException) as refused:
        balanced_settings({PREFIX + key: value})
    assert str(refused.value) == line


def test_an_unknown_rack_mode_is_one_clear_line() -> None:
    with pytest.raises(ReplicaPlacementException, match="'on', expected enforced, safe or disabled"):
        balanced_settings({"replica.placer.rack.aware": "on"})
