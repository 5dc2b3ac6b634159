import json
from fractions import Fraction

import numpy as np
import pytest

from rackspan.clients import ReplicaSelectors, group_reads
from rackspan.errors import UsageError
from rackspan.model import RackId
from rackspan.traffic import (
    Basis,
    BillRow,
    PriceFile,
    TrafficFlow,
    TrafficPath,
    bill,
    consume_flows,
    produce_flows,
    replication_flows,
)
from rackspan.traffic.bill import MONTH_SECONDS
from rackspan.traffic.flows import Link
from rackspan.traffic.price_file import price_file
from tests.clients.worlds import World
from tests.traffic.volumes import volumes_of

PARTITIONS = 3
BYTES_IN_30_DAYS = 300 * 2**20 * 30 * 86_400
CLIENTS = ["produce", "consume", "follower-fetch"]
BROKERS = ["replicate", "reassign", "restore"]
BOTH = ["source", "destination"]


def price(paths: list[str], sides: list[str], amount: float | None, unit: str = "GiB") -> dict[str, object]:
    return {"paths": paths, "sides": sides, "amount": amount, "unit": unit, "source": "by hand", "read_on": None}


def prices(*entries: dict[str, object]) -> PriceFile:
    return price_file(json.dumps({"currency": "USD", "prices": entries}))


AWS = prices(price([*CLIENTS, *BROKERS], BOTH, 0.01))
MSK = prices(price(CLIENTS, BOTH, 0.01), price(BROKERS, BOTH, 0))
GCP = prices(price([*CLIENTS, *BROKERS], ["source"], 0.01), price([*CLIENTS, *BROKERS], ["destination"], 0))
AZURE = prices(price([*CLIENTS, *BROKERS], BOTH, 0))


def flows(*, follower_fetching: bool) -> list[TrafficFlow]:
    """300 MiB/s into three racks at replication factor 3, read by two groups, for 30 days."""
    every = [("t", number) for number in range(PARTITIONS)]
    world = World(
        {1: "r1", 2: "r2", 3: "r3"},
        {row: (row[1] + 1, [row[1] + 1, *({1, 2, 3} - {row[1] + 1})], [1, 2, 3]) for row in every},
        dict.fromkeys((1, 2, 3), ReplicaSelectors.RACK_AWARE if follower_fetching else ReplicaSelectors.LEADER),
        declared={str(number): f"r{(number + 1) % 3 + 1}" if follower_fetching else None for number in range(3)},
        reads={str(number): [("t", number)] for number in range(3)},
    )
    snapshot = world.snapshot()
    bytes_in = np.full(PARTITIONS, BYTES_IN_30_DAYS // PARTITIONS, np.int64)
    reads = group_reads(world.group(), snapshot, world.selectors)
    return [
        *produce_flows(snapshot, volumes_of(snapshot, bytes_in)),
        *replication_flows(snapshot, volumes_of(snapshot, bytes_in)),
        *consume_flows(snapshot, volumes_of(snapshot, bytes_in), [reads, reads]),
    ]


@pytest.mark.parametrize(
    ("price_list", "from_leaders", "from_followers"),
    [(AWS, 60_750, 40_500), (MSK, 30_375, 10_125), (GCP, 30_375, 20_250), (AZURE, 0, 0)],
    ids=["AWS", "MSK", "GCP", "Azure"],
)
def test_the_bill_is_the_one_computed_by_hand(price_list: PriceFile, from_leaders: int, from_followers: int) -> None:
    anywhere = bill(flows(follower_fetching=False), price_list)
    near = bill(flows(follower_fetching=True), price_list)
    assert anywhere.money == from_leaders
    assert near.money == from_followers
    assert not anywhere.unpriced
    assert not near.unpriced


@pytest.mark.parametrize(
    ("entries", "side"),
    [
        ([], None),
        ([price(["replicate"], BOTH, None)], None),
        ([price(["replicate"], ["source"], 0.01)], "destination"),
        ([price(["replicate"], ["source"], None), price(["replicate"], ["destination"], 0.01)], "source"),
    ],
)
def test_a_price_that_is_not_known_is_listed_apart_and_is_not_zero(
    entries: list[dict[str, object]], side: str | None
) -> None:
    """Of one side alone, the other is named, with what to write where a cloud does not charge it."""
    has_none = f": its {side} has none; write 0 in the price file if that is free" if side else ""
    found = bill(flows(follower_fetching=True), prices(price(["produce"], BOTH, 0.01), *entries))
    assert found.money == 10_125
    assert {(row.path, row.money, row.reason) for row in found.unpriced} == {
        ("replicate", None, f"the price of replicate is not known{has_none}")
    }


def test_bytes_and_racks_that_are_not_known_are_listed_apart() -> None:
    world = World({1: "r1", 2: "r2", 3: None}, {("t", 0): (1, [1, 2, 3], [1, 2, 3])}, {})
    unknown_rack = bill(
        replication_flows(world.snapshot(), volumes_of(world.snapshot(), np.array([2**30], np.int64))), AWS
    )
    assert [(row.size_bytes, row.reason) for row in unknown_rack.unpriced] == [(2**30, "a rack is not known")]
    unknown_bytes = bill(
        replication_flows(world.snapshot(), volumes_of(world.snapshot(), np.array([-1], np.int64))), AWS
    )
    assert {(row.size_bytes, row.reason) for row in unknown_bytes.unpriced} == {
        (None, "a rack is not known"),
        (None, "the bytes are not known"),
    }


def test_a_gb_is_smaller_than_a_gib() -> None:
    per_gb = bill(flows(follower_fetching=True), prices(price([*CLIENTS, *BROKERS], BOTH, 0.01, "GB")))
    assert per_gb.money * 10**9 == 40_500 * 2**30


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (
            [price(["produce"], BOTH, 0.01), price(["produce"], ["source"], 0)],
            "produce has two prices of its source; remove one from the price file",
        ),
        ([price(["producing"], BOTH, 0.01)], "producing"),
        ([price(["produce"], BOTH, -1)], "amount is -1, outside 0 to 1000000"),
        ([price(["produce"], BOTH, 1e308)], "amount is 1e+308, outside 0 to 1000000"),
        ([{"paths": ["produce"], "sides": BOTH, "unit": "GB", "source": "x", "read_on": None}], "amount is missing"),
    ],
    ids=["twice", "path", "negative", "no finite sum", "missing"],
)
def test_a_wrong_price_file_is_refused_by_name(entries: list[dict[str, object]], message: str) -> None:
    with pytest.raises(UsageError, match="prices") as error:
        prices(*entries)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_rows_of_a_bill_are_sums_by_path_topic_group_and_basis_and_what_is_not_known_stays_so() -> None:
    def flow(
        size: int | None, group: str | None = "g", to: str | None = "r2", path: TrafficPath = TrafficPath.CONSUME
    ) -> TrafficFlow:
        ends = RackId("r1"), RackId(to) if to else None
        return TrafficFlow(Link(path, "t", group, *ends, Basis.DERIVED, "x"), size)

    found = bill(
        [
            *(flow(2 * 10**9), flow(10**9), flow(7, to="r1"), flow(5, "h")),
            *(flow(1, to=None), flow(2, to=None), flow(None), flow(4, "h", to=None), flow(None, "h", to=None)),
            *(flow(8, "h", to=None), flow(3, None, path=TrafficPath.RESTORE)),
        ],
        prices(price(["consume"], BOTH, 0.01, "GB")),
    )
    derived = Basis.DERIVED
    assert found.rows == (
        BillRow(TrafficPath.CONSUME, "t", "g", derived, 3 * 10**9, Fraction(6, 100)),
        BillRow(TrafficPath.CONSUME, "t", "h", derived, 5, Fraction(10, 10**11)),
    )
    assert found.unpriced == (
        BillRow(TrafficPath.CONSUME, "t", "g", derived, 3, None, "a rack is not known"),
        BillRow(TrafficPath.CONSUME, "t", "g", derived, None, None, "the bytes are not known"),
        BillRow(TrafficPath.CONSUME, "t", "h", derived, None, None, "a rack is not known"),
        BillRow(TrafficPath.RESTORE, "t", None, derived, 3, None, "the price of restore is not known"),
    )
    assert (found.currency, found.money) == ("USD", Fraction(6, 100) + Fraction(10, 10**11))
    assert MONTH_SECONDS == 2_592_000
