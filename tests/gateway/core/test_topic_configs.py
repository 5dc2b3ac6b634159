"""Whether a change of min.insync.racks is accepted: the same rule as the embedded cluster's."""

import pytest

from rackspan.gateway.core.policies import Entry, FilePolicies, Policies, Scope, TopicPolicy, record
from rackspan.gateway.core.topic_configs import (
    DELETE,
    SET,
    ConfigChange,
    RefusedChange,
    change_of,
    describe,
    refused_above,
)
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import Broker, BrokerId, RackId
from rackspan.wire.messages.configs import DescribeConfigsResult

APPEND, SUBTRACT = 2, 3
BROKERS = [Broker(BrokerId(1), RackId("a")), Broker(BrokerId(2), RackId("b")), Broker(BrokerId(3), None)]


def policies(static: int, **own: int) -> Policies:
    made = Policies(FilePolicies(static))
    for name, value in own.items():
        made.replay(*record(Scope.BROKER, name.removeprefix("broker"), Entry(value)))
    return made


@pytest.mark.parametrize(
    ("name", "value", "static", "own", "accepted"),
    [
        ("", "2", 1, {}, False),
        ("", "2", 1, {"broker3": 1}, True),
        ("", "1", 2, {}, True),
        ("3", "2", 1, {}, False),
        ("1", "2", 1, {}, True),
        ("3", None, 2, {"broker3": 1}, False),
        ("3", None, 1, {"broker3": 1, "broker": 2}, False),
        ("3", None, 1, {"broker3": 1}, True),
        ("", None, 2, {"broker": 1}, False),
        ("", None, 2, {"broker": 1, "broker3": 1}, True),
    ],
)
def test_a_brokers_value_is_judged_by_the_value_that_then_applies(
    name: str, value: str | None, static: int, own: dict[str, int], accepted: bool
) -> None:
    change = change_of(
        ConfigResourceType.BROKER, name, DELETE if value is None else SET, [value], BROKERS, policies(static, **own)
    )
    if accepted:
        assert isinstance(change, ConfigChange)
        assert change.value == (None if value is None else int(value))
    else:
        assert isinstance(change, RefusedChange)
        assert (change.code, "has no broker.rack" in change.message) == (ErrorCode.INVALID_CONFIG, True)


@pytest.mark.parametrize(("name", "written"), [("01", 1), ("007", 7), ("\u0661", 1)])
def test_a_broker_whose_id_is_written_otherwise_gets_no_value(name: str, written: int) -> None:
    """Kafka reads such an id as a number. The value would be kept under that name, and apply to no broker."""
    change = change_of(ConfigResourceType.BROKER, name, SET, ["2"], BROKERS, policies(1))
    assert change == RefusedChange(ErrorCode.INVALID_REQUEST, f"broker {name}: write its id as {written}")
    kept = policies(1, **{f"broker{name}": 2})
    assert change_of(ConfigResourceType.BROKER, name, DELETE, [None], BROKERS, kept) == ConfigChange(
        Scope.BROKER, name, None
    )


@pytest.mark.parametrize(
    ("kind", "name", "file", "own", "part"),
    [
        (ConfigResourceType.TOPIC, "t", 1, {}, "topic t has no min.insync.racks of its own that could be deleted"),
        (ConfigResourceType.TOPIC, "t", 2, {}, "deleted; 2 is the value of another place, file: change it there"),
        (ConfigResourceType.TOPIC, "t", 1, {"broker": 3}, "deleted; 3 is the value of another place, cluster: change"),
        (ConfigResourceType.BROKER, "", 2, {}, "broker (default) has no min.insync.racks at the gateway"),
        (ConfigResourceType.BROKER, "1", 1, {"broker": 2}, "one that was set at Kafka itself is deleted there"),
    ],
)
def test_a_delete_that_deletes_nothing_is_refused_and_names_where_a_value_is(
    kind: int, name: str, file: int, own: dict[str, int], part: str
) -> None:
    """Kafka's own tool prints Completed for a success, and the value would stay."""
    change = change_of(kind, name, DELETE, [None], BROKERS, policies(file, **own))
    assert isinstance(change, RefusedChange)
    assert (change.code, part in change.message) == (ErrorCode.INVALID_CONFIG, True), change.message


def test_a_topics_own_value_is_deleted() -> None:
    kept = policies(1)
    kept.replay(*record(Scope.TOPIC, "t", Entry(2)))
    assert change_of(ConfigResourceType.TOPIC, "t", DELETE, [None], BROKERS, kept) == ConfigChange(
        Scope.TOPIC, "t", None
    )


def test_a_value_of_a_topic_that_brokers_write_is_refused() -> None:
    outcomes = [refused_above(ConfigChange(Scope.TOPIC, "__consumer_offsets", value), 3, 3) for value in (2, 1, None)]
    assert [isinstance(outcome, RefusedChange) and outcome.code for outcome in outcomes] == [
        ErrorCode.INVALID_CONFIG,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("static", "kept", "chain"),
    [(2, {}, ["2", "1"]), (1, {}, ["1"]), (2, {"broker": 3}, ["3", "2", "1"]), (1, {"broker": 3}, ["3", "1"])],
)
def test_values_are_described_in_the_order_in_which_they_apply(
    static: int, kept: dict[str, int], chain: list[str]
) -> None:
    result = DescribeConfigsResult(resource_type=ConfigResourceType.TOPIC, resource_name="t")
    describe(result, None, policies(static, **kept), synonyms=True, documentation=False)
    (described,) = result.configs
    assert [described.value, *(synonym.value for synonym in described.synonyms)] == [chain[0], *chain]


def test_a_topics_value_is_accepted_with_a_warning_about_brokers_without_a_rack() -> None:
    change = change_of(ConfigResourceType.TOPIC, "t", SET, ["2"], BROKERS, policies(1))
    assert isinstance(change, ConfigChange)
    assert "without broker.rack" in change.warnings[0]


@pytest.mark.parametrize(
    ("value", "known", "held", "part"),
    [(3, 2, 3, "the cluster has 2 racks"), (3, 3, 2, "has replicas in 2 racks"), (3, 3, 3, None), (None, 0, 0, None)],
)
def test_a_value_above_the_racks_is_refused(value: int | None, known: int, held: int, part: str | None) -> None:
    outcome = refused_above(ConfigChange(Scope.TOPIC, "t", value), known, held)
    if part is None:
        assert isinstance(outcome, ConfigChange)
    else:
        assert isinstance(outcome, RefusedChange)
        assert (outcome.code, part in outcome.message) == (ErrorCode.INVALID_CONFIG, True)


@pytest.mark.parametrize(
    ("operation", "values", "code", "message"),
    [
        (SET, ["2", "3"], ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys: min.insync.racks"),
        (
            APPEND,
            ["2"],
            ErrorCode.INVALID_CONFIG,
            "Can't append to or subtract from key min.insync.racks: it is no list",
        ),
        (
            SUBTRACT,
            ["2"],
            ErrorCode.INVALID_CONFIG,
            "Can't append to or subtract from key min.insync.racks: it is no list",
        ),
        (SET, [None], ErrorCode.INVALID_REQUEST, "Null value not supported for : min.insync.racks"),
    ],
)
@pytest.mark.parametrize("kind", [ConfigResourceType.TOPIC, ConfigResourceType.BROKER])
def test_what_kafka_refuses_of_any_config_is_refused_in_its_words(
    kind: int, operation: int, values: list[str | None], code: ErrorCode, message: str
) -> None:
    assert change_of(kind, "1", operation, values, BROKERS, policies(1)) == RefusedChange(code, message)


@pytest.mark.parametrize("keys", [None, [], ["retention.ms", "min.insync.racks"]])
def test_it_is_described_where_it_is_requested_or_no_key_is(keys: list[str] | None) -> None:
    """As in Kafka, which describes every config if a request names none."""
    result = DescribeConfigsResult(resource_type=ConfigResourceType.TOPIC, resource_name="orders")
    describe(result, keys, policies(2), synonyms=False, documentation=False)
    assert [(config.name, config.value) for config in result.configs] == [("min.insync.racks", "2")]


@pytest.mark.parametrize(
    ("result", "keys"),
    [
        (DescribeConfigsResult(error_code=3, resource_type=ConfigResourceType.TOPIC, resource_name="t"), None),
        (DescribeConfigsResult(resource_type=ConfigResourceType.BROKER_LOGGER, resource_name="1"), None),
        (DescribeConfigsResult(resource_type=ConfigResourceType.TOPIC, resource_name="t"), ["min.insync.replicas"]),
        # The default of all brokers, which was not set.
        (DescribeConfigsResult(resource_type=ConfigResourceType.BROKER, resource_name=""), None),
    ],
)
def test_nothing_is_added_to_what_has_no_value(result: DescribeConfigsResult, keys: list[str] | None) -> None:
    describe(result, keys, policies(2), synonyms=True, documentation=True)
    assert result.configs == ()


@pytest.mark.parametrize(
    ("kind", "name", "chain"),
    [
        (ConfigResourceType.TOPIC, "t", [(2, 4), (4, 1), (3, 4), (6, 3), (5, 4), (1, 5)]),
        (ConfigResourceType.TOPIC, "other", [(2, 4), (6, 3), (5, 4), (1, 5)]),
        (ConfigResourceType.BROKER, "1", [(2, 4), (7, 2), (6, 3), (5, 4), (1, 5)]),
        (ConfigResourceType.BROKER, "", [(2, 4), (6, 3), (5, 4), (1, 5)]),
    ],
)
@pytest.mark.parametrize("full", [False, True])
def test_a_value_has_its_source_and_on_request_its_synonyms_and_documentation(
    kind: int, name: str, chain: list[tuple[int, int]], full: bool
) -> None:
    """Sources by Kafka's ConfigSource: 1 topic, 2 broker, 3 default of brokers, 4 static, 5 default."""
    values = Policies(FilePolicies(5, {"t": TopicPolicy(3)}, override=2))
    for scope, of, value in ((Scope.TOPIC, "t", 4), (Scope.BROKER, "1", 7), (Scope.BROKER, "", 6)):
        values.replay(*record(scope, of, Entry(value)))
    result = DescribeConfigsResult(resource_type=kind, resource_name=name)
    describe(result, ["min.insync.racks"], values, synonyms=full, documentation=full)
    (described,) = result.configs
    assert (described.value, described.config_source) == (str(chain[0][0]), chain[0][1])
    assert (described.name, described.config_type, described.read_only, described.is_sensitive) == (
        *("min.insync.racks", 3, False, False),
    )
    synonyms = [(int(one.value or 0), one.source) for one in described.synonyms]
    assert synonyms == (chain if full else [])
    assert (described.documentation is not None) is full
