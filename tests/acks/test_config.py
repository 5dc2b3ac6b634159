"""Every row of the validation of min.insync.racks, and every way to write a wrong value."""

import pytest

from rackspan.acks.config import ConfigOutcome, SetAt, judge_broker_config, judge_topic_config
from rackspan.model import Broker, BrokerId, RackId

BROKERS = [Broker(BrokerId(1), RackId("a")), Broker(BrokerId(2), RackId("b"))]
SOME_RACKLESS = [Broker(BrokerId(9)), *BROKERS, Broker(BrokerId(3))]
WRONG = ["0", "-1", "two", "", "1.5", "2147483648", "0x2", "²", "1_000", "true"]


@pytest.mark.parametrize("text", WRONG)
def test_a_value_that_is_no_number_of_racks_is_refused_by_key_and_value(text: str) -> None:
    line = f"Invalid value {text} for configuration min.insync.racks: a whole number of at least 1"
    for verdict in (
        judge_topic_config(text, BROKERS),
        judge_broker_config(text, SetAt.BROKER_DYNAMIC, RackId("a"), BROKERS),
    ):
        assert (verdict.outcome, verdict.value, verdict.error) == (ConfigOutcome.INVALID_CONFIG, None, line)
    at_start = judge_broker_config(text, SetAt.BROKER_START, RackId("a"), BROKERS)
    assert (at_start.outcome, at_start.error) == (ConfigOutcome.REFUSES_TO_START, line)


@pytest.mark.parametrize(("length", "shown"), [(40, "x" * 40), (41, "x" * 37 + "...")])
def test_a_long_value_is_cut_in_the_message(length: int, shown: str) -> None:
    error = judge_topic_config("x" * length, BROKERS).error
    assert error == f"Invalid value {shown} for configuration min.insync.racks: a whole number of at least 1"


@pytest.mark.parametrize(
    ("at", "outcome"),
    [
        (SetAt.BROKER_START, ConfigOutcome.REFUSES_TO_START),
        (SetAt.BROKER_DYNAMIC, ConfigOutcome.INVALID_CONFIG),
    ],
)
def test_a_broker_without_a_rack_cannot_require_racks(at: SetAt, outcome: ConfigOutcome) -> None:
    verdict = judge_broker_config("2", at, None, BROKERS)
    assert (verdict.outcome, verdict.value) == (outcome, None)
    assert verdict.error == ("min.insync.racks 2: this broker has no broker.rack; set it, or leave the value at 1")
    assert judge_broker_config("1", at, None, BROKERS).value == 1


@pytest.mark.parametrize(
    ("text", "brokers", "warnings"),
    [
        ("2", BROKERS, ()),
        (" +2 ", BROKERS, ()),
        ("1", SOME_RACKLESS, ()),
        ("1", [], ()),
        ("2", SOME_RACKLESS, ("min.insync.racks 2: brokers without broker.rack count as one unnamed rack: 3,9",)),
        ("3", BROKERS, ("min.insync.racks 3: the cluster has 2 racks; acks=all is refused until it has more",)),
        ("2", BROKERS[:1], ("min.insync.racks 2: the cluster has 1 rack; acks=all is refused until it has more",)),
        (
            "4",
            SOME_RACKLESS,
            (
                "min.insync.racks 4: brokers without broker.rack count as one unnamed rack: 3,9",
                "min.insync.racks 4: the cluster has 3 racks; acks=all is refused until it has more",
            ),
        ),
    ],
)
def test_what_may_become_true_later_is_accepted_with_a_warning(
    text: str, brokers: list[Broker], warnings: tuple[str, ...]
) -> None:
    verdict = judge_topic_config(text, brokers)
    assert (verdict.outcome, verdict.value, verdict.warnings) == (ConfigOutcome.ACCEPTED, int(text), warnings)


@pytest.mark.parametrize("text", ["2147483647", "+2147483647", "00000002147483647", "\t2147483647\n"])
def test_the_largest_int_of_kafka_is_a_value_however_it_is_written(text: str) -> None:
    assert judge_topic_config(text, BROKERS).value == 2147483647
    assert judge_broker_config(text, SetAt.BROKER_DYNAMIC, RackId("a"), BROKERS).value == 2147483647


def test_more_racks_than_the_cluster_has_is_one_warning_for_it_too() -> None:
    verdict = judge_broker_config("3", SetAt.BROKER_START, RackId("a"), BROKERS)
    assert verdict.outcome is ConfigOutcome.ACCEPTED
    assert verdict.warnings == ("min.insync.racks 3: the cluster has 2 racks; acks=all is refused until it has more",)
