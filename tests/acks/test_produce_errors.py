import pytest

from rackspan.acks.min_insync_racks import ProduceVerdict, Thresholds
from rackspan.acks.produce_errors import Cause, error_message, produce_error
from rackspan.errors import (
    NotEnoughRacks,
    NotEnoughRacksAfterAppend,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    RetriableProduceError,
)
from tests.acks.test_min_insync_racks import RACKS, isr

BY_RACKS = "orders-3: in-sync racks a,b = 2 < min.insync.racks 3"


@pytest.mark.parametrize(
    ("in_sync", "message"),
    [
        ("012", BY_RACKS),
        ("45", "orders-3: in-sync racks (no rack) = 1 < min.insync.racks 3"),
        ("4520", "orders-3: in-sync racks (no rack),a,b = 3 < min.insync.racks 4"),
        ("", "orders-3: in-sync racks none = 0 < min.insync.racks 3"),
    ],
)
def test_the_message_names_the_racks(in_sync: str, message: str) -> None:
    required = Thresholds(1, 4 if in_sync == "4520" else 3)
    for verdict in (ProduceVerdict.NOT_ENOUGH_RACKS, ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND):
        assert error_message(verdict, "orders", 3, isr(in_sync), RACKS, required) == message


@pytest.mark.parametrize("verdict", [ProduceVerdict.ACCEPT, ProduceVerdict.NOT_ENOUGH_REPLICAS])
def test_kafkas_own_verdicts_keep_kafkas_own_words(verdict: ProduceVerdict) -> None:
    assert error_message(verdict, "orders", 3, isr("0"), RACKS, Thresholds(2, 3)) is None


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        (19, BY_RACKS, NotEnoughRacks),
        (20, BY_RACKS, NotEnoughRacksAfterAppend),
        (1001, None, NotEnoughRacks),
        (1002, BY_RACKS, NotEnoughRacksAfterAppend),
        (19, None, NotEnoughReplicas),
        (19, "The size of the current ISR is insufficient", NotEnoughReplicas),
        (20, None, NotEnoughReplicasAfterAppend),
    ],
)
def test_clients_get_one_retriable_parent(code: int, message: str | None, kind: type[RetriableProduceError]) -> None:
    raised = produce_error(code, message)
    assert type(raised) is kind
    assert isinstance(raised, RetriableProduceError)
    assert str(raised) == (message or kind.__doc__)


@pytest.mark.parametrize("code", [0, 7, 1003])
def test_other_codes_are_none_of_ours(code: int) -> None:
    assert produce_error(code, BY_RACKS) is None


def test_the_words_of_each_cause_are_those_of_logs_and_dashboards() -> None:
    assert [one.value for one in Cause] == [
        "too few racks in sync",
        "too few replicas in sync",
        "too few replicas' logs show the record",
        "the ISR is unknown",
        "the leader changed",
        "the end of the config topic could not be read",
        "an earlier batch of the producer was refused",
    ]
