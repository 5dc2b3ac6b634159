"""Partitions of coordinators' topics, by values that Java gives."""

from rackspan.cluster.core.coordination import (
    INTERNAL_TOPICS,
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    partition_for,
)
from rackspan.kafka_bytes.java_hash import java_hash


def test_the_least_hash_lives_in_partition_0() -> None:
    assert partition_for("polygenelubricants", 50) == 0


def test_a_key_with_a_negative_hash_has_the_partition_of_its_absolute_value() -> None:
    """Utils.abs, not a remainder of Python's, which would be another partition."""
    assert java_hash("my-group") == -1906497762
    assert partition_for("my-group", 50) == 1906497762 % 50


def test_coordinators_topics_have_kafkas_names() -> None:
    """Topic.GROUP_METADATA_TOPIC_NAME and TRANSACTION_STATE_TOPIC_NAME: clients hide and admin tools look up these."""
    assert (OFFSETS_TOPIC, TRANSACTIONS_TOPIC) == ("__consumer_offsets", "__transaction_state")
    assert {"__consumer_offsets", "__transaction_state"} == INTERNAL_TOPICS
