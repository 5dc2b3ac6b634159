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


KAFKA_4_1 = """
cleanup.policy  delete  log.cleanup.policy
compression.type  producer  compression.type
delete.retention.ms  86400000  log.cleaner.delete.retention.ms
file.delete.delay.ms  60000  log.segment.delete.delay.ms
flush.messages  9223372036854775807  log.flush.interval.messages
flush.ms  9223372036854775807  log.flush.interval.ms
follower.replication.throttled.replicas  -  -
index.interval.bytes  4096  log.index.interval.bytes
leader.replication.throttled.replicas  -  -
local.retention.bytes  -2  log.local.retention.bytes
local.retention.ms  -2  log.local.retention.ms
max.compaction.lag.ms  9223372036854775807  log.cleaner.max.compaction.lag.ms
max.message.bytes  1048588  message.max.bytes
message.timestamp.after.max.ms  3600000  log.message.timestamp.after.max.ms
message.timestamp.before.max.ms  9223372036854775807  log.message.timestamp.before.max.ms
message.timestamp.type  CreateTime  log.message.timestamp.type
min.cleanable.dirty.ratio  0.5  log.cleaner.min.cleanable.ratio
min.compaction.lag.ms  0  log.cleaner.min.compaction.lag.ms
min.insync.racks  1  min.insync.racks
min.insync.replicas  1  min.insync.replicas
preallocate  false  log.preallocate
remote.storage.enable  false  -
retention.bytes  -1  log.retention.bytes
retention.ms  604800000  log.retention.ms
segment.bytes  1073741824  log.segment.bytes
segment.index.bytes  10485760  log.index.size.max.bytes
segment.jitter.ms  0  log.roll.jitter.ms
segment.ms  604800000  log.roll.ms
unclean.leader.election.enable  false  unclean.leader.election.enable
"""
"""Key, default (- for an empty one) and the broker's config that it inherits, as Kafka's documentation lists them; and min.insync.racks."""


def test_topics_have_kafkas_keys_defaults_and_inherited_configs() -> None:
    listed = [line.split() for line in KAFKA_4_1.strip().splitlines()]
    assert [[one.key, one.default or "-", one.broker_key or "-"] for one in TOPIC_CONFIGS.values()] == listed
    assert list(TOPIC_CONFIGS) == [key for key, _, _ in listed]
