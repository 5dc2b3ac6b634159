import pytest

from rackspan.errors import UsageError
from rackspan.kafka_source.writing.options import SINK_OPTIONS, parse_sink

LEAST = {"kafka.bootstrap.servers": "127.0.0.1:9092"}

WRONG = [
    ({"kafka.bootstrap.servers": None}, "option kafka.bootstrap.servers: name the cluster's brokers"),
    ({"topic": " "}, "option topic: no topic is named"),
    ({"topics": "a"}, "option topics: rackspan-kafka has no such option; did you mean topic?"),
    ({"subscribe": "a"}, "option subscribe: only reads have it"),
    ({"includeHeaders": "true"}, "option includeheaders: only reads have it; a column 'headers' is written"),
    ({"path": "orders"}, "option path: save() and start() take no path here; the option topic names the topic"),
    ({"min.insync.racks": "0"}, "option min.insync.racks: '0' is not a positive whole number"),
    ({"min.insync.racks": "2", "underMinRacks": "stop"}, "option underMinRacks: 'stop' is not one of fail, wait"),
    ({"min.insync.racks": "2", "broker.identity": "none"}, "option broker.identity: 'none' is not one of proved, address"),
    ({"broker.identity": "address"}, "option broker.identity: no broker's log is read without min.insync.racks; set"),
    ({"underMinRacks": "wait"}, "option underMinRacks: it says what to do where racks are few; set min.insync.racks"),
    ({"kafka.acks": "1"}, "option kafka.acks: '1' is not possible; the sink's producer is idempotent, with acks=all"),
    ({"kafka.enable.idempotence": "false"}, "option kafka.enable.idempotence: 'false' is not possible"),
    ({"kafka.max.in.flight.requests.per.connection": "6"}, "'6' is not possible; the sink's producer is idempotent"),
    ({"kafka.transactional.id": "t"}, "option kafka.transactional.id: Spark has no transaction over tasks"),
    ({"kafka.key.serializer": "x"}, "option kafka.key.serializer: keys are strings or bytes"),
    ({"kafka.compression.type": "lzo"}, "option kafka.compression.type: 'lzo' is not one of none, gzip"),
    ({"kafka.linger.ms": "soon"}, "option kafka.linger.ms: 'soon' is not a positive whole number"),
    ({"kafka.delivery.timeout.ms": "5"}, "option kafka.delivery.timeout.ms: use progressTimeoutMs"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_a_wrong_option_is_one_line_that_names_it(change: dict[str, str | None], message: str) -> None:
    options = {key: value for key, value in {**LEAST, **change}.items() if value is not None}
    with pytest.raises(UsageError) as raised:
        parse_sink(options)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_defaults_require_one_rack_and_rows_name_their_topics() -> None:
    options = parse_sink(LEAST | {"checkpointLocation": "/somewhere"})
    assert (options.topic, options.min_insync_racks, options.wait_for_racks, dict(options.producer)) == (
        None,
        1,
        False,
        {},
    )
    assert options.client.progress_timeout_seconds == 120


def test_every_option_has_an_effect() -> None:
    values = {"topic": "orders", "min.insync.racks": "2", "progressTimeoutMs": "5000"}
    for name, value in values.items():
        assert parse_sink({**LEAST, name: value}) != parse_sink(LEAST), name
    two = {**LEAST, "min.insync.racks": "2"}
    assert parse_sink({**two, "underMinRacks": "wait"}) != parse_sink(two)
    assert parse_sink({**two, "broker.identity": "address"}) != parse_sink(two)
    assert {*values, "underMinRacks", "broker.identity", "commandConfig"} == set(SINK_OPTIONS)


def test_javas_producer_properties_become_librdkafkas() -> None:
    given = {
        "kafka.acks": "ALL", "kafka.enable.idempotence": "true", "kafka.max.in.flight.requests.per.connection": "5",
        "kafka.compression.type": "zstd", "kafka.linger.ms": "0", "kafka.batch.size": "1000",
        "kafka.max.request.size": "2000000", "kafka.buffer.memory": "1048576", "kafka.security.protocol": "SSL",
    }  # fmt: skip
    options = parse_sink(LEAST | given)
    assert options.producer == {
        "compression.type": "zstd", "linger.ms": 0, "batch.size": 1000, "message.max.bytes": 2000000,
        "queue.buffering.max.kbytes": 1024,
    }  # fmt: skip
    assert options.client.properties == {"security.protocol": "SSL"}
