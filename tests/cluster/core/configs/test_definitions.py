"""Which values of a config are valid, and Kafka's words for one that is not.

Definitions are compared with Kafka's own: kafka_4_4_definitions.tsv is what KafkaConfigDefinitions.java (tests/compat/java) prints
with the jars of 4.4.0, for the keys that are here and the limits of groups. tests/compat/test_config_definitions.py prints it again.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from rackspan.cluster.core.configs import BROKER_CONFIGS, GROUP_CONFIGS, TOPIC_CONFIGS, ConfigDefinition

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


RECORDED: Final = Path(__file__).with_name("kafka_4_4_definitions.tsv")

KINDS: Final[Mapping[str, Mapping[str, ConfigDefinition]]] = {
    "broker": BROKER_CONFIGS,
    "topic": TOPIC_CONFIGS,
    "group": GROUP_CONFIGS,
}

NOT_AS_KAFKA: Final = """
broker  auto.leader.rebalance.enable  boolean  false  -  read-only
broker  broker.id  int  -  -  read-only
broker  default.replication.factor  int  3  [1,...]  read-only
broker  group.initial.rebalance.delay.ms  int  0  [0,...]  read-only
broker  log.flush.interval.ms  long  9223372036854775807  [0,...]  cluster-wide
broker  log.retention.ms  long  604800000  [-1,...]  cluster-wide
broker  log.roll.jitter.ms  long  0  [0,...]  cluster-wide
broker  log.roll.ms  long  604800000  [1,...]  cluster-wide
broker  node.id  int  -  -  read-only
broker  offsets.topic.num.partitions  int  10  [1,...]  read-only
broker  replica.lag.time.max.ms  long  30000  [1,...]  read-only
broker  transaction.state.log.num.partitions  int  10  [1,...]  read-only
topic  follower.replication.throttled.replicas  list    -  -
topic  leader.replication.throttled.replicas  list    -  -
"""
"""Defaults that suit a cluster in a test; ids, which every broker has; keys whose default Kafka takes from another key
(log.retention.hours); and lists of replicas, which are checked elsewhere."""

NOT_IN_KAFKAS_TABLES: Final = """
broker  extended.error.codes  boolean  false  -  cluster-wide
broker  follower.replication.throttled.rate  long  9223372036854775807  [0,...]  cluster-wide
broker  inter.broker.protocol.version  string  4.1  -  read-only
broker  leader.replication.throttled.rate  long  9223372036854775807  [0,...]  cluster-wide
broker  min.insync.racks  int  1  [1,...]  cluster-wide
broker  rack.locator.class  string  -  -  read-only
broker  rack.locator.properties  string  -  -  read-only
broker  replica.alter.log.dirs.io.max.bytes.per.second  long  9223372036854775807  [0,...]  cluster-wide
broker  replica.placer.class.name  string  striped  -  read-only
topic  min.insync.racks  int  1  [1,...]  -
"""
"""The proposals' keys, the one that KIP-36 needs of older brokers, and quotas, which Kafka defines beside its table."""


def rows(text: str, separator: str) -> dict[tuple[str, str], list[str]]:
    split = [line.split(separator) for line in text.strip("\n").splitlines()]
    return {(kind, key): rest for kind, key, *rest in split}


def row(kind: str, one: ConfigDefinition) -> list[str]:
    """As KafkaConfigDefinitions.java prints it."""
    if one.choices:
        pattern = ["by_duration:PnDTnHnMn.nS"] if one.pattern else []
        valid = "[" + ", ".join(sorted([*one.choices, *pattern])) + "]"
    elif one.least is None:
        valid = "-"
    else:
        valid = f"[{one.least},...]" if one.most is None else f"[{one.least},...,{one.most}]"
    changed = "read-only" if one.read_only else "per-broker" if one.per_broker else "cluster-wide"
    default = "-" if one.default is None else one.default
    return [one.type.name.lower(), default, valid, changed if kind == "broker" else "-"]


def in_order(valid: str) -> str:
    return "[" + ", ".join(sorted(valid[1:-1].split(", "))) + "]" if ", " in valid else valid


def limit(kafka: Mapping[tuple[str, str], list[str]], key: str, which: str) -> str:
    """A group's least or greatest value is the default of its broker's group.KIND.min.NAME or group.KIND.max.NAME."""
    kind, _, name = key.partition(".")
    row = kafka.get(("broker", f"group.{kind}.{which}.{name.replace('num.standby', 'standby')}"))
    return "0" if row is None else row[1]


def test_every_definition_is_kafkas_or_listed_as_ours() -> None:
    kafka = rows(RECORDED.read_text(encoding="utf-8"), "\t")
    # A ratio ends at one by its type here.
    wanted = {
        key: [of_type, default, "[0,...]" if of_type == "double" and valid == "[0,...,1]" else in_order(valid), changed]
        for key, (of_type, default, valid, changed) in kafka.items()
        if key[1] in KINDS[key[0]]
    }
    for (kind, key), values in wanted.items():
        if kind == "group" and values[2].endswith("...]"):
            values[2] = f"[{limit(kafka, key, 'min')},...,{limit(kafka, key, 'max')}]"
    ours = {(kind, key): row(kind, one) for kind, table in KINDS.items() for key, one in table.items()}
    assert all(one.key == key for table in KINDS.values() for key, one in table.items())
    assert ours == {**wanted, **rows(NOT_AS_KAFKA, "  "), **rows(NOT_IN_KAFKAS_TABLES, "  ")}
    assert rows(NOT_AS_KAFKA, "  ").keys() <= wanted.keys()
    assert rows(NOT_IN_KAFKAS_TABLES, "  ").keys() & wanted.keys() == set()
