"""Whether a change of min.insync.racks is accepted: the same rule as the embedded cluster's."""

import pytest

from rackspan.gateway.core.policies import Entry, FilePolicies, Policies, Scope, record
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
        ("3", None, 2, {}, True),
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
    assert isinstance(outcome, ConfigChange) if part is None else part in getattr(outcome, "message", "")
