from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.acks.min_insync_racks import (
    ProduceVerdict,
    RackBits,
    Thresholds,
    before_acknowledgement,
    before_append,
    is_checked,
    rack_bits,
    watermark_may_advance,
)
from rackspan.errors import UsageError
from rackspan.model import Broker, BrokerId, RackId
from tests.strategies import brokers

RACKS = rack_bits([Broker(BrokerId(i), RackId(r) if r else None) for i, r in enumerate(["a", "a", "b", "c", "", ""])])

CASES = [
    # in sync, replicas required, racks required -> verdict before the append
    ("0123", 2, 2, "ACCEPT"),
    ("02", 2, 2, "ACCEPT"),
    ("01", 2, 2, "NOT_ENOUGH_RACKS"),
    ("0", 2, 2, "NOT_ENOUGH_REPLICAS"),
    ("0", 2, 1, "NOT_ENOUGH_REPLICAS"),
    ("01", 2, 1, "ACCEPT"),
    ("023", 2, 4, "NOT_ENOUGH_RACKS"),
    ("023", 4, 3, "NOT_ENOUGH_REPLICAS"),
    ("", 1, 1, "NOT_ENOUGH_REPLICAS"),
    # Brokers without a rack share one unnamed rack; one that is not listed adds none.
    ("45", 2, 2, "NOT_ENOUGH_RACKS"),
    ("04", 2, 2, "ACCEPT"),
    ("09", 2, 2, "NOT_ENOUGH_RACKS"),
    ("029", 3, 2, "ACCEPT"),
]


def isr(text: str) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(int(digit)) for digit in text)


@pytest.mark.parametrize(("in_sync", "replicas", "racks", "verdict"), CASES)
def test_each_threshold_is_checked_in_its_turn(in_sync: str, replicas: int, racks: int, verdict: str) -> None:
    required = Thresholds(replicas, racks)
    after = verdict if verdict == "ACCEPT" else f"{verdict}_AFTER_APPEND"
    assert before_append(isr(in_sync), RACKS, required) is ProduceVerdict[verdict]
    assert before_acknowledgement(isr(in_sync), RACKS, required) is ProduceVerdict[after]
    assert watermark_may_advance(isr(in_sync), RACKS, required) is (verdict == "ACCEPT")


@given(brokers(), st.integers(1, 4), st.integers(1, 4))
def test_the_verdict_is_that_of_the_racks_named_one_by_one(
    listed: tuple[Broker, ...], replicas: int, racks: int
) -> None:
    bits, required = rack_bits(listed), Thresholds(replicas, racks)
    for size in range(min(len(listed), 4) + 1):
        for chosen in combinations(listed, size):
            named = {broker.rack or "" for broker in chosen}
            in_sync = [broker.id for broker in chosen]
            expected = (
                "NOT_ENOUGH_REPLICAS" if size < replicas else "NOT_ENOUGH_RACKS" if len(named) < racks else "ACCEPT"
            )
            # min.insync.racks 1 requires nothing, and an ISR that has replicas enough has a rack.
            assert before_append(in_sync, bits, required).name == expected
            assert set(bits.names(in_sync)) == named


def test_racks_are_not_counted_where_the_value_is_1(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[object] = []
    original = RackBits.count

    def watched(racks: RackBits, in_sync: tuple[BrokerId, ...]) -> int:
        counted.append(in_sync)
        return original(racks, in_sync)

    monkeypatch.setattr(RackBits, "count", watched)
    for check in (before_append, before_acknowledgement, watermark_may_advance):
        check(isr("012"), RACKS, Thresholds(2, 1))
    assert counted == []
    for check in (before_append, before_acknowledgement, watermark_may_advance):
        check(isr("012"), RACKS, Thresholds(2, 2))
    assert counted == [isr("012")] * 3


def test_counting_looks_at_each_in_sync_replica_once() -> None:
    class Watched(dict[BrokerId, int]):
        looks = 0

        def get(self, key: BrokerId, default: int = 0) -> int:  # type: ignore[override]
            self.looks += 1
            return super().get(key, default)

    for size in (1, 10, 1000):
        bits = Watched({BrokerId(i): 1 << i % 3 for i in range(5000)})
        assert RackBits(bits, RACKS.racks).count([BrokerId(i) for i in range(size)]) == min(size, 3)
        assert bits.looks == size


def test_acks_0_and_1_are_never_checked() -> None:
    assert [acks for acks in (-1, 0, 1) if is_checked(acks)] == [-1]


@pytest.mark.parametrize(("replicas", "racks", "key"), [(0, 1, "replicas is 0"), (1, -1, "racks is -1")])
def test_a_threshold_below_1_is_refused(replicas: int, racks: int, key: str) -> None:
    with pytest.raises(UsageError) as refusal:
        Thresholds(replicas, racks)
    assert str(refusal.value) == f"min.insync.{key}, expected a whole number of at least 1"


@pytest.mark.parametrize(("replicas", "factor", "effective"), [(2, 1, 1), (3, 3, 3), (3, 2, 2), (1, 3, 1)])
def test_no_more_replicas_are_required_than_the_partition_has_and_racks_are_not_lowered(
    replicas: int, factor: int, effective: int
) -> None:
    assert Thresholds(replicas, 3).of_partition(factor) == Thresholds(effective, 3)


def test_where_nothing_is_configured_one_replica_in_sync_is_enough() -> None:
    assert Thresholds() == Thresholds(1, 1)
    assert before_append(isr("0"), RACKS, Thresholds()) is ProduceVerdict.ACCEPT
    assert before_append(isr(""), RACKS, Thresholds()) is ProduceVerdict.NOT_ENOUGH_REPLICAS
