"""What of a broker's description of configs is kept."""

import pytest

from rackspan.client.requests import _audited_values, _own_values
from rackspan.model import MIN_INSYNC_REPLICAS
from rackspan.wire.messages.configs import DescribeConfigsResourceResult, DescribeConfigsResult


def described(**values: tuple[str | None, int]) -> DescribeConfigsResult:
    configs = [
        DescribeConfigsResourceResult(name=name.replace("_", "."), value=value, config_source=source)
        for name, (value, source) in values.items()
    ]
    return DescribeConfigsResult(configs=configs)


@pytest.mark.parametrize(("value", "kept"), [("true", {"true"}), ("false", set()), ("", set()), (None, set())])
def test_a_config_that_may_weaken_the_topic_is_kept_where_it_does(value: str | None, kept: set[str]) -> None:
    result = described(unclean_leader_election_enable=(value, 5), min_insync_replicas=("2", 5))
    assert _audited_values(result) == {
        MIN_INSYNC_REPLICAS: "2",
        **dict.fromkeys(["unclean.leader.election.enable"] if kept else [], value),
    }


def test_a_value_is_a_topics_own_if_it_is_set_on_the_topic() -> None:
    """1 is Kafka's number for a topic's own value, 5 for a default."""
    result = described(retention_ms=("5", 1), min_insync_replicas=("2", 5))
    keys = ["retention.ms", "min.insync.replicas", "cleanup.policy"]
    assert _own_values(result, keys, 1) == {"retention.ms": "5", "min.insync.replicas": None, "cleanup.policy": None}
