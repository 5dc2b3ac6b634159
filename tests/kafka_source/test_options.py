import re
from pathlib import Path

import pytest

from rackspan.client.config.keys import KEYS, WITHOUT_EFFECT
from rackspan.client.config.translation import librdkafka_settings
from rackspan.errors import UsageError
from rackspan.kafka_source.options import (
    _CLIENT_IGNORED,
    OPTIONS,
    Position,
    TopicChoice,
    parse,
    without_effect_line,
)
from rackspan.kafka_source.reading.progress import ReplicaChoice
from rackspan.kafka_source.writing.options import SINK_OPTIONS, parse_sink
from rackspan.model.ids import TopicPartition

LEAST = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "orders"}

WRONG = [
    ({"kafka.bootstrap.servers": None}, False, "option kafka.bootstrap.servers: name the cluster's brokers"),
    ({"subscribe": None}, False, "chooses the topics; none is given"),
    ({"assign": '{"orders": [0]}'}, False, "chooses the topics; subscribe and assign are given"),
    ({"subscribe": " , "}, False, "option subscribe: no topic is named"),
    ({"subscribe": None, "subscribePattern": "("}, False, "option subscribePattern: '(' is not a regular expression"),
    (
        {"subscribe": None, "assign": "orders-0"},
        False,
        "option assign: 'orders-0' is not JSON such as {\"orders\": [0, 1]}",
    ),
    ({"subscribe": None, "assign": "{}"}, False, "option assign: no partition is named"),
    ({"subscribe": None, "assign": '{"orders": [-1]}'}, False, "is not of the form"),
    ({"startingOffsets": "latest"}, False, "option startingOffsets: a batch read cannot have 'latest'"),
    ({"endingOffsets": "earliest"}, False, "option endingOffsets: a batch read cannot have 'earliest'"),
    ({"startingOffsets": "first"}, False, "option startingOffsets: 'first' is not earliest, latest or JSON"),
    ({"startingOffsets": '{"orders": {"0": -1}}'}, False, "orders-0 has offset -1, which is not possible here"),
    ({"startingOffsets": '{"orders": {"0": -3}}'}, True, "orders-0 has offset -3, which is not possible here"),
    ({"endingOffsets": "latest"}, True, "option endingOffsets: only batch reads have it"),
    ({"filterPushdown": "true"}, True, "option filterPushdown: only batch reads have it"),
    (
        {"kafka.fetch.min.byte": "5"},
        False,
        "option kafka.fetch.min.byte: rackspan-kafka has no such property of a client",
    ),
    ({"kafka.ssl.truststor.type": "PEM"}, True, "did you mean kafka.ssl.truststore.type?"),
    ({"maxOffsetsPerTrigger": "0"}, True, "option maxOffsetsPerTrigger: '0' is not a positive whole number"),
    (
        {"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"},
        True,
        "option minOffsetsPerTrigger: 5 is above maxOffsetsPerTrigger, which is 4",
    ),
    ({"maxTriggerDelay": "soon"}, True, "option maxTriggerDelay: 'soon' is not a duration as 15m, 30s or 500ms"),
    ({"minPartitions": "x"}, False, "option minPartitions: 'x' is not a positive whole number"),
    ({"failOnDataLoss": "no"}, False, "option failOnDataLoss: 'no' is neither true nor false"),
    ({"startingTimestamp": "yesterday"}, False, "option startingTimestamp: 'yesterday' is not a positive whole number"),
    ({"startingOffsetsByTimestampStrategy": "first"}, False, "'first' is not one of error, latest"),
    ({"startingOffset": "latest"}, False, "no such option; did you mean startingOffsets?"),
    ({"something": "1"}, False, "rackspan-kafka has no such option; the documentation lists all of them"),
    (
        {"kafka.group.id": "g"},
        False,
        "option kafka.group.id: this source joins no consumer group; a stream commits its offsets to one for monitors with "
        "commitOffsetsToGroup",
    ),
    ({"commitOffsetsToGroup": " "}, True, "option commitOffsetsToGroup: the group has no name"),
    ({"kafka.auto.offset.reset": "latest"}, False, "option kafka.auto.offset.reset: use startingOffsets"),
    ({"kafka.isolation.level": "committed"}, False, "'committed' is neither read_committed nor read_uncommitted"),
    (
        {"kafkaConsumer.pollTimeoutMs": "5"},
        False,
        "option kafkaconsumer.polltimeoutms: use progressTimeoutMs, after which a task without progress fails",
    ),
    ({"groupIdPrefix": "x"}, False, "option groupidprefix: this source joins no consumer group"),
    ({"rack.map": "[1]"}, False, 'option rack.map: \'[1]\' is not JSON such as {"worker-1": "r1"}'),
    ({"rack.map": '{"a": 1}'}, False, "option rack.map: every rack is a string"),
    ({"rack.costs": '{"a": 1}'}, False, 'is not of the form {"r1": {"r2": 1, "r3": 5}}'),
    ({"rack.costs": '{"a": {"b": -1}}'}, False, 'is not of the form {"r1": {"r2": 1, "r3": 5}}'),
    ({"maxBytesPerTrigger": "0"}, True, "option maxBytesPerTrigger: '0' is not a positive whole number"),
    ({"rack.metadata": "ibm"}, False, "option rack.metadata: 'ibm' is not one of aws, gcp, azure"),
]


@pytest.mark.parametrize(("change", "streaming", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_a_wrong_option_is_one_line_that_names_it(change: dict[str, str | None], streaming: bool, message: str) -> None:
    options = {key: value for key, value in {**LEAST, **change}.items() if value is not None}
    with pytest.raises(UsageError) as raised:
        parse(options, streaming=streaming)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_names_count_in_any_case_and_defaults_are_sparks() -> None:
    batch = parse({"KAFKA.Bootstrap.Servers": "h:1", "SUBSCRIBE": "a,b"}, streaming=False)
    assert (batch.strategy, batch.topics) == (TopicChoice.SUBSCRIBE, "a,b")
    assert (batch.start, batch.end) == (Position(name="earliest"), Position(name="latest"))
    assert (batch.fail_on_data_loss, batch.include_headers, batch.client.read_committed) == (True, False, False)
    assert parse(LEAST, streaming=True).start == Position(name="latest")


def test_what_a_read_ignores_is_named_in_one_line() -> None:
    shared = {"kafka.max.poll.records": "5", "kafka.fetch.min.bytes": "9", "kafka.isolation.level": "read_committed"}
    stream = parse({**LEAST, **shared, "maxOffsetsPerTrigger": "5"}, streaming=True)
    assert stream.without_effect == ("kafka.fetch.min.bytes", "kafka.max.poll.records")
    assert (stream.client.properties, stream.max_offsets_per_trigger) == ({}, 5)
    batch = parse({**LEAST, **shared, "maxOffsetsPerTrigger": "5"}, streaming=False)
    assert (
        without_effect_line(batch.without_effect)
        == "options without effect here: maxOffsetsPerTrigger, kafka.fetch.min.bytes, kafka.max.poll.records"
    )
    assert parse(LEAST, streaming=True).without_effect == ()


def test_no_property_is_both_ignored_and_used() -> None:
    options = {f"kafka.{name}": "5" for name in _CLIENT_IGNORED}
    assert len(parse({**LEAST, **options}, streaming=True).without_effect) == len(_CLIENT_IGNORED)
    assert (_CLIENT_IGNORED & KEYS.keys()) <= WITHOUT_EFFECT.keys()


@pytest.mark.parametrize("name", sorted(WITHOUT_EFFECT.keys() - {"bootstrap.servers", "retries"}))
def test_what_no_connection_uses_is_named_by_reads_and_writes(name: str) -> None:
    option = {f"kafka.{name}": "5"}
    assert parse({**LEAST, **option}, streaming=True).without_effect == (f"kafka.{name}",)
    assert parse_sink({"kafka.bootstrap.servers": "h:1", **option}).without_effect == (f"kafka.{name}",)


def test_a_file_of_other_clients_is_taken_with_one_warning(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "bootstrap.servers=SASL_SSL://a.example:9092,[::1]:1\nsecurity.protocol=SSL\nsession.timeout.ms=45000\nacks=all\n"
        "group.id=g\nkey.deserializer=x\nschema.registry.url=https://registry\n"
    )
    read = parse({"subscribe": "orders", "commandConfig": str(file)}, streaming=True)
    assert (read.client.bootstrap_servers, read.client.properties) == (
        "a.example:9092,[::1]:1",
        {"security.protocol": "SSL"},
    )
    assert read.without_effect == ("kafka.session.timeout.ms",)
    mismatch = (
        "option kafka.bootstrap.servers SASL_SSL://a.example:9092,[::1]:1: the address says SASL_SSL, and connections use "
        "SSL; set security.protocol=SASL_SSL, or leave SASL_SSL:// out"
    )
    ignored = "commandConfig: settings of other clients and tools are ignored: "
    assert read.client.warnings == (f"{ignored}acks, group.id, key.deserializer, schema.registry.url", mismatch)
    written = parse_sink({"commandConfig": str(file)})
    assert (written.client.bootstrap_servers, written.client.properties) == (
        "a.example:9092,[::1]:1",
        {"security.protocol": "SSL"},
    )
    assert written.client.warnings == (
        f"{ignored}session.timeout.ms, group.id, key.deserializer, schema.registry.url",
        mismatch,
    )
    file.write_text("bootstrap.servers=a.example:9092\nsasl.mechanisms=PLAIN\n")
    with pytest.raises(UsageError, match=r"did you mean kafka\.sasl\.mechanism\?"):
        parse({"subscribe": "orders", "commandConfig": str(file)}, streaming=True)


def test_variables_of_a_file_and_of_options_are_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RACKSPAN_TEST_ADDRESS", "a.example:9092")
    file = tmp_path / "client.properties"
    provider = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
    file.write_text(
        f"config.providers=e\nconfig.providers.e.class={provider}\nclient.id=${{e:RACKSPAN_TEST_ADDRESS}}\n"
    )
    given = {"subscribe": "o", "commandConfig": str(file), "kafka.bootstrap.servers": "${e:RACKSPAN_TEST_ADDRESS}"}
    client = parse(given, streaming=False).client
    assert (client.bootstrap_servers, client.properties) == ("a.example:9092", {"client.id": "a.example:9092"})


def test_timestamps_come_before_offsets() -> None:
    both = {**LEAST, "startingOffsets": "earliest", "startingTimestamp": "1000"}
    assert parse(both, streaming=False).start == Position(timestamp_ms=1000)
    each = {**LEAST, "endingOffsetsByTimestamp": '{"orders": {"0": 5}}'}
    assert parse(each, streaming=False).end == Position(timestamps_ms={TopicPartition("orders", 0): 5})


def test_a_file_of_properties_is_read_and_options_come_first(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "bootstrap.servers=other:1\nsecurity.protocol=SSL\nisolation.level=read_committed\nclient.rack=r1\n"
    )
    options = parse({**LEAST, "commandConfig": str(file)}, streaming=False)
    assert options.client.bootstrap_servers == "127.0.0.1:9092"
    assert options.client.properties == {"security.protocol": "SSL"}
    assert options.client.read_committed
    assert options.rack.fixed == "r1"
    given = {**LEAST, "commandConfig": str(file), "kafka.client.rack": "r2"}
    assert parse(given, streaming=False).rack.fixed == "r2"


VALUES = {
    "subscribePattern": "o.*", "assign": '{"orders": [0]}', "startingTimestamp": "5", "endingTimestamp": "5",
    "startingOffsetsByTimestamp": '{"orders": {"0": 5}}', "endingOffsetsByTimestamp": '{"orders": {"0": 5}}',
    "startingOffsets": '{"orders": {"0": 5}}', "endingOffsets": '{"orders": {"0": 5}}',
    "startingOffsetsByTimestampStrategy": "latest", "failOnDataLoss": "false", "includeHeaders": "true",
    "minPartitions": "3", "maxRecordsPerPartition": "3", "metricsPath": "m", "progressTimeoutMs": "5",
    "filterPushdown": "true", "maxOffsetsPerTrigger": "3", "maxBytesPerTrigger": "3", "minOffsetsPerTrigger": "3", "maxTriggerDelay": "3s", "commitOffsetsToGroup": "g", "rack.env": "X", "rack.file": "f", "rack.map": "{}",
    "rack.script": "s", "rack.metadata": "gcp", "rack.metadata.host": "h", "rack.costs": '{"a": {"b": 1}}', "subscribe": "payments",
}  # fmt: skip
"""Of each option of reads a value that is not its default."""


def test_every_option_has_an_effect() -> None:
    assert set(VALUES) | {"commandConfig"} == set(OPTIONS)
    for name, value in VALUES.items():
        streaming = "Trigger" in name or name == "commitOffsetsToGroup"
        chosen = {} if name in ("subscribePattern", "assign") else {"subscribe": "orders"}
        given = {"kafka.bootstrap.servers": "127.0.0.1:9092", **chosen, name: value}
        assert parse(given, streaming=streaming) != parse(LEAST, streaming=streaming), name


OF_CLIENTS = {
    "kafka.bootstrap.servers": "h:1", "kafka.isolation.level": "read_committed", "kafka.check.crcs": "false",
    "kafka.max.partition.fetch.bytes": "5", "kafka.fetch.max.wait.ms": "5", "kafka.client.rack": "r1",
    "kafka.compression.type": "lz4", "kafka.linger.ms": "5", "kafka.batch.size": "5", "kafka.max.request.size": "5",
    "kafka.buffer.memory": "5000", "kafka.acks": "all", "kafka.enable.idempotence": "true",
    "kafka.max.in.flight.requests.per.connection": "5", "kafka.security.protocol": "SSL",
    "topic": "orders", "min.insync.racks": "2", "underMinRacks": "wait", "broker.identity": "address",
}  # fmt: skip


def accepted(name: str, value: str) -> list[str]:
    """By a batch, a stream and a write: whether the option is taken, by the parsers themselves."""
    chosen = {} if name in ("subscribe", "subscribePattern", "assign") else {"subscribe": "orders"}
    racks = {"min.insync.racks": "2"} if name in ("underMinRacks", "broker.identity") else {}
    found = []
    for parser, more in (
        (lambda given: parse(given, streaming=False), chosen),
        (lambda given: parse(given, streaming=True), chosen),
        (parse_sink, racks),
    ):
        try:
            options = parser({"kafka.bootstrap.servers": "h:1", **more, name: value})
            librdkafka_settings(options.client.properties)
        except UsageError:
            found.append("refused")
        else:
            found.append("ignored" if name in getattr(options, "without_effect", ()) else "yes")
    return found


def test_the_table_of_options_equals_the_code(tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text("security.protocol=SSL\n")
    values = VALUES | OF_CLIENTS | {"commandConfig": str(tmp_path / "client.properties")}
    table = Path("docs/how-to/spark-source.md").read_text().split("## Options")[1]
    listed: dict[str, list[str]] = {}
    for line in table.splitlines():
        if line.startswith("| `"):
            names, *cells = (cell.strip() for cell in line.strip("| ").split(" | "))
            listed |= dict.fromkeys(re.findall("`([^`]+)`", names), cells[:3])
    assert listed == {name: accepted(name, values.get(name, "5")) for name in listed}
    assert set(OPTIONS) | set(SINK_OPTIONS) | {f"kafka.{name}" for name in _CLIENT_IGNORED} <= set(listed)


def test_the_page_lists_every_reason_for_a_choice() -> None:
    page = Path("docs/how-to/spark-source.md").read_text()
    assert [choice for choice in ReplicaChoice if f"`{choice.value}`" not in page] == []
