"""Records without a key go to leaders in the rack, within the bound on skew, whatever the racks and sizes are."""

from collections import Counter
from random import Random

import pytest

from rackspan.errors import UsageError
from rackspan.producers.in_rack.partitioner import InRackPartitioner, LeaderRacks

BATCH = 1_000
EVEN = {0: "r1", 1: "r2", 2: "r3", 3: "r1", 4: "r2", 5: "r3"}


def sent(partitioner: InRackPartitioner, racks: LeaderRacks, sizes: list[int]) -> Counter[int | None]:
    counted: Counter[int | None] = Counter()
    for size in sizes:
        counted[partitioner.partition("orders", size, lambda: racks)] += size
    return counted


def test_with_as_many_leaders_in_each_rack_every_record_stays() -> None:
    counted = sent(InRackPartitioner("r2", Random(1), batch_bytes=BATCH), EVEN, [100] * 1_000)
    assert set(counted) == {1, 4}
    assert abs(counted[1] - counted[4]) <= BATCH


def test_without_a_leader_in_the_rack_the_client_decides_until_there_is_one() -> None:
    partitioner = InRackPartitioner("r9", Random(1), batch_bytes=BATCH)
    assert set(sent(partitioner, EVEN, [100] * 50)) == {None}
    assert sent(partitioner, {**EVEN, 5: "r9"}, [100] * 500).most_common(1)[0][0] == 5


@pytest.mark.parametrize("seed", range(60))
def test_no_partition_gets_more_than_the_bound_and_near_ones_get_all_that_it_allows(seed: int) -> None:
    rng = Random(seed)
    racks = {partition: rng.choice(["r1", "r2", "r3", None]) for partition in range(rng.randint(2, 30))}
    racks[0] = "r1"
    skew = rng.choice([1, 1.5, 2, 4])
    largest = rng.choice([10, 300, 5_000])
    sizes = [rng.randint(1, largest) for _ in range(3_000)]
    counted = sent(InRackPartitioner("r1", rng, skew_max=skew, batch_bytes=BATCH), racks, sizes)
    even = sum(sizes) / len(racks)
    assert max(counted.values()) <= skew * even + BATCH + largest
    near = [partition for partition, rack in racks.items() if rack == "r1"]
    allowed = min(sum(sizes), skew * even * len(near))
    assert sum(counted[partition] for partition in near) >= allowed - len(near) * (BATCH + largest)


def test_few_leaders_in_the_rack_get_as_many_times_the_even_share_as_there_are_racks() -> None:
    racks = {0: "r1", **dict.fromkeys(range(1, 7), "r2"), **dict.fromkeys(range(7, 12), "r3")}
    counted = sent(InRackPartitioner("r1", Random(1), batch_bytes=BATCH), racks, [100] * 12_000)
    assert counted[0] / counted.total() == pytest.approx(3 / 12, abs=0.01)
    others = [size for partition, size in counted.items() if partition]
    assert max(others) - min(others) <= BATCH


def test_a_new_partition_is_not_given_what_the_others_have() -> None:
    partitioner = InRackPartitioner("r1", Random(1), batch_bytes=BATCH)
    sent(partitioner, {0: "r1", 1: "r1"}, [100] * 1_000)
    counted = sent(partitioner, {0: "r1", 1: "r1", 2: "r1"}, [100] * 300)
    assert counted[2] <= 11_000


def test_the_metadata_is_read_once_a_batch() -> None:
    reads: list[int] = []
    partitioner = InRackPartitioner("r1", Random(1), batch_bytes=10)
    for _ in range(100):
        partitioner.partition("orders", 1, lambda: reads.append(1) or EVEN)  # type: ignore[func-returns-value]
    assert len(reads) == 10


@pytest.mark.parametrize(("rack", "skew"), [("", None), ("r1", 0.5), ("r1", float("nan"))])
def test_a_rack_and_a_bound_that_cannot_be_are_refused(rack: str, skew: float | None) -> None:
    with pytest.raises(UsageError):
        InRackPartitioner(rack, Random(1), skew_max=skew)
