"""Warnings about the values of min.insync.racks that are in force."""

from rackspan.gateway.core.policies import Entry, FilePolicies, Policies, Scope, record
from rackspan.gateway.core.value_warnings import ConfigTopicState, rack_warnings, values_warnings
from rackspan.model import Broker, BrokerId, RackId


def topic(racks: int = 2, log_start_offset: int = 0, *, confirmed: bool = True) -> ConfigTopicState:
    return ConfigTopicState("configs", racks, log_start_offset, confirmed)


def brokers(*racks: str | None) -> list[Broker]:
    return [Broker(BrokerId(number), None if rack is None else RackId(rack)) for number, rack in enumerate(racks, 1)]


def with_value(value: int, override: int | None = None) -> Policies:
    policies = Policies(FilePolicies(override=override))
    policies.replay(*record(Scope.TOPIC, "t", Entry(value)))
    return policies


def test_values_that_the_racks_meet_are_no_warning() -> None:
    assert values_warnings(with_value(2), brokers("a", "b"), topic()) == []
    assert values_warnings(with_value(2), brokers("a", "b"), None) == []


def test_more_racks_than_known_or_than_the_config_topic_has_are_warnings() -> None:
    too_many, at_risk = values_warnings(with_value(3), brokers("a", "b"), topic())
    assert too_many.startswith("topic t: min.insync.racks 3: the cluster has 2 racks")
    assert "has replicas in 2 racks" in at_risk
    (static,) = values_warnings(Policies(FilePolicies(3)), brokers("a", "b"), None)
    assert static.startswith("the file's acknowledgements.min.insync.racks: min.insync.racks 3")


def test_brokers_without_a_rack_are_a_warning() -> None:
    (warning,) = values_warnings(with_value(2), brokers("a", "b", None), topic())
    assert "brokers without broker.rack count as one unnamed rack: 3" in warning


def test_racks_whose_names_read_alike_are_a_warning_and_others_none() -> None:
    (warning,) = rack_warnings(brokers("a", "A", "b"))
    assert warning.startswith("racks 'a', 'A' count as 2")
    assert list(rack_warnings(brokers("a", "b", "c"))) == []


def test_the_override_is_a_warning_and_what_it_lowers_none() -> None:
    (warning,) = values_warnings(with_value(3, 1), brokers("a", "b"), topic())
    assert warning.startswith("acknowledgements.override.min.insync.racks is 1")


def test_records_that_were_deleted_or_cannot_be_read_are_warnings() -> None:
    policies = with_value(2)
    policies.replay(record(Scope.TOPIC, "t", None)[0], b"{")
    unreadable, deleted = values_warnings(policies, brokers("a", "b"), topic(log_start_offset=7))
    assert "topic t" in unreadable
    assert "begins at offset 7" in deleted


def test_a_topic_that_nobody_has_confirmed_since_it_was_created_is_a_warning() -> None:
    (warning,) = values_warnings(with_value(2), brokers("a", "b"), topic(confirmed=False))
    assert warning.startswith(
        "the config topic configs was created, and its values of min.insync.racks are not confirmed"
    )
    assert warning.endswith("set them again, then run rackspan gateway confirm --config FILE --apply")
