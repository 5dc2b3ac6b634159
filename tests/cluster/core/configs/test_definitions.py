"""Which values of a config are valid, and Kafka's words for one that is not."""

import pytest

from rackspan.cluster.core.configs.definitions import GROUP_CONFIGS, TOPIC_CONFIGS, ConfigDefinition

DEFINITIONS = {**TOPIC_CONFIGS, **GROUP_CONFIGS}


@pytest.mark.parametrize(
    ("key", "text", "trouble"),
    [
        ("consumer.session.timeout.ms", "45000", None),
        ("consumer.session.timeout.ms", " 60000 ", None),
        ("consumer.session.timeout.ms", "44999", "Value must be at least 45000"),
        ("consumer.session.timeout.ms", "60001", "Value must be no more than 60000"),
        ("consumer.session.timeout.ms", "soon", "Not a number of type INT"),
        ("min.insync.replicas", str(2**31 - 1), None),
        ("min.insync.replicas", str(2**31), "Value must be no more than 2147483647"),
        ("min.insync.replicas", "0", "Value must be at least 1"),
        ("retention.ms", str(2**63 - 1), None),
        ("retention.ms", str(2**63), "Value must be no more than 9223372036854775807"),
        ("min.cleanable.dirty.ratio", "0.5", None),
        ("min.cleanable.dirty.ratio", "1.01", "Value must be no more than 1"),
        ("preallocate", "TRUE", None),
        ("preallocate", "yes", "Expected value to be either true or false"),
        ("cleanup.policy", "compact,delete", None),
        ("cleanup.policy", "compact,keep", "String must be one of: compact, delete"),
        ("message.timestamp.type", "LogAppendTime", None),
        ("share.auto.offset.reset", "by_duration:PT1H", None),
        ("share.auto.offset.reset", "earliest", None),
    ],
)
def test_a_value_is_valid_or_refused_with_its_reason(key: str, text: str, trouble: str | None) -> None:
    definition: ConfigDefinition = DEFINITIONS[key]
    wanted = None if trouble is None else f"Invalid value {text} for configuration {key}: {trouble}"
    assert definition.complaint(text) == wanted
