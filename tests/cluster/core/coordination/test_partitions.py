"""Java's hash, by values that Java gives."""

import pytest

from rackspan.cluster.core.coordination.partitions import (
    INTERNAL_TOPICS,
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    java_hash,
    partition_for,
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("😀", 1772899),
    ],
)
def test_a_string_has_javas_hash(text: str, code: int) -> None:
    assert java_hash(text) == code


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
