"""What was measured, and what makes the difference of two sets of flows a saving."""

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest

from rackspan.advice import LEAST_BYTES_A_MONTH, measured_traffic
from rackspan.advice.advice import Advice, Concern
from rackspan.advice.measured import Remedy, Terms, saving
from rackspan.clients import ReplicaSelectors
from rackspan.model import RackId, TopicPartition
from rackspan.model.group import GroupDescription, MemberDescription
from rackspan.traffic import Basis, ClusterReading, CountedFlow, Interval, TrafficFlow, TrafficPath
from rackspan.traffic.bill import MONTH_SECONDS
from rackspan.traffic.flows import Link
from tests.advice.test_savings import prices
from tests.traffic.test_logs import AT, Log, reading

T = TopicPartition("t", 0)
PRODUCE, CONSUME, FOLLOWER = TrafficPath.PRODUCE, TrafficPath.CONSUME, TrafficPath.FOLLOWER_FETCH


def member(name: str) -> MemberDescription:
    return MemberDescription(name, f"client-{name}", partitions=(T,))


GROUPS = tuple(
    GroupDescription(name, "Stable", "consumer", "range", (member(name),)) for name in ("measured", "unmeasured")
)


def passed() -> Interval:
    """Member `measured` read from its own rack r2 through a gateway, by which p wrote too."""
    counted = {
        CountedFlow(FOLLOWER, "t", "client-measured", "r2", "r2"): 40,
        CountedFlow(PRODUCE, "t", "client-p", "r3", "r1"): 300,
    }
    selectors = dict.fromkeys(range(1, 6), ReplicaSelectors.LEADER)
    first = replace(reading({"t": Log()}), committed={"measured": {T: 10}})
    second = replace(
        reading({"t": Log([1300] * 3, end=13)}), committed={"measured": {T: 12}}, read_at=AT + timedelta(seconds=90)
    )
    return Interval(
        ClusterReading(first, GROUPS, counters={"gateway": dict.fromkeys(counted, 0)}),
        ClusterReading(second, GROUPS, selectors, counters={"gateway": counted}),
    )


def test_what_was_measured_is_what_passed_between_the_readings() -> None:
    interval = passed()
    traffic, causes = measured_traffic(interval)
    assert traffic.snapshot is interval.after.snapshot
    assert traffic.volumes.bytes_in.tolist() == [300]
    assert traffic.progress == {"measured": {T: 200}}
    assert traffic.seconds == 90.0
    assert traffic.selectors == dict.fromkeys(range(1, 6), ReplicaSelectors.LEADER)
    assert [(flow.link.path, flow.link.source_rack, flow.size_bytes) for flow in traffic.produced] == [
        (PRODUCE, "r3", 300)
    ]
    # Gateways write no rack into what is produced.
    assert traffic.through_gateway == {"client-measured"}
    assert [
        (each.member.member_id, each.member.rack, [read.served_from for read in each.reads])
        for reads in traffic.reads
        for each in reads.members
    ] == [("measured", "r2", ["r2"]), ("unmeasured", None, ["r1"])]
    assert [(each.cause, each.group, each.members) for each in causes] == [
        ("no-client-rack", "unmeasured", ("unmeasured",))
    ]


def test_of_a_repaired_cluster_it_is_what_would_have_passed_there() -> None:
    """Broker 2 leads in place of broker 1: what is written and what a member without a rack reads goes to its rack, r2."""
    interval = passed()
    rows = interval.after.snapshot.partitions
    repaired = replace(interval.after.snapshot, partitions=replace(rows, leader=rows.leader * 0 + 2))
    traffic, causes = measured_traffic(interval, repaired)
    assert traffic.snapshot is repaired
    assert [(flow.link.source_rack, flow.link.destination_rack, flow.size_bytes) for flow in traffic.produced] == [
        ("r3", "r2", 300)
    ]
    assert [read.served_from for reads in traffic.reads for each in reads.members for read in each.reads] == [
        "r2",
        "r2",
    ]
    assert [each.cause for each in causes] == ["no-client-rack"]


def flow(
    size: int | None, path: TrafficPath = CONSUME, source: str | None = "r1", assumption: str = "read once"
) -> TrafficFlow:
    ends = RackId(source) if source else None, RackId("r2")
    return TrafficFlow(Link(path, "t", "g", *ends, Basis.DERIVED, assumption), size)


REMEDY = Remedy(
    kind="kind", reason="why", command="what", cost="cost", undo="undo", topic="of a topic", group="of a group"
)


def saved(now: list[TrafficFlow], then: list[TrafficFlow], priced: Any = None, least: int = 1) -> Advice | None:
    """Over a tenth of a month."""
    return saving(REMEDY, now, then, Terms(MONTH_SECONDS / 10, priced, least))


def test_a_saving_is_what_its_remedy_says_and_what_less_crosses_racks_in_a_month() -> None:
    now = [
        *(flow(70), flow(5, FOLLOWER), flow(None), flow(99, source="r2", assumption="at home")),
        *(flow(99, source=None, assumption="somewhere"), flow(0, assumption="nothing")),
    ]
    then = [flow(20, FOLLOWER, assumption="copied"), flow(99, source="r2", assumption="at home")]
    assert saved(now, then, prices(consume=0.01, follower_fetch=0.01)) == Advice(
        concern=Concern.MONEY,
        kind="kind",
        reason="why",
        command="what",
        cost="cost",
        undo="undo",
        topic="of a topic",
        group="of a group",
        bytes_a_month=550,
        money_a_month=550 * 0.02 / 2**30,
        place=0,
        assumption="copied; read once",
    )


def test_money_is_not_known_without_a_price_of_every_path_whose_bytes_change() -> None:
    now, then = [flow(70), flow(5, FOLLOWER)], [flow(20), flow(5, FOLLOWER)]

    def money(then: list[TrafficFlow], **amounts: float) -> float | None:
        found = saved(now, then, prices(**amounts))
        assert found is not None
        return found.money_a_month

    assert money(then, consume=0.01) == 500 * 0.02 / 2**30
    assert money(then, follower_fetch=0.01) is None
    assert money([flow(20)], consume=0.01) is None
    found = saved(now, then)
    assert found is not None
    assert (found.bytes_a_month, found.money_a_month) == (500, None)


def test_bytes_that_are_free_do_not_make_a_saving_and_neither_does_more_money() -> None:
    now = [flow(70), flow(5, FOLLOWER)]
    free = prices(consume=0, follower_fetch=0.01)
    # 70 bytes less of what is free.
    assert saved(now, [flow(5, FOLLOWER)], free) is None
    found = saved(now, [], free, least=50)
    assert found is not None
    assert (found.bytes_a_month, found.money_a_month) == (750, 50 * 0.02 / 2**30)
    assert saved(now, [], free, least=51) is None
    # Fewer bytes that cost more.
    dear = prices(consume=0.01, follower_fetch=1)
    assert saved(now, [flow(10), flow(6, FOLLOWER)], dear) is None
    # As much money for fewer bytes.
    assert saved([flow(70)], [flow(35, FOLLOWER)], prices(consume=0.01, follower_fetch=0.02)) is None


@pytest.mark.parametrize(("least", "enough"), [(499, True), (500, True), (501, False)])
def test_a_saving_is_as_many_bytes_a_month_as_are_required(least: int, enough: bool) -> None:
    assert (saved([flow(70)], [flow(20)], least=least) is not None) is enough


def test_no_byte_less_is_no_saving_whatever_is_required() -> None:
    assert saved([flow(70)], [flow(70)], least=0) is None
    assert saved([flow(70)], [flow(71)], least=-100) is None
    # Two sums of equal parts may differ by two bytes, and so much is no saving.
    assert saved([flow(70)], [flow(68)], least=0) is None
    assert saved([flow(70)], [flow(67)], least=0) is not None
    # Of 100 months a hundredth of a byte a month.
    assert saving(REMEDY, [flow(1)], [], Terms(100 * MONTH_SECONDS, None, 0)) is None
    assert Terms(1.5, None, 0).a_month == Fraction(2 * 2_592_000, 3)
    assert LEAST_BYTES_A_MONTH == 10_737_418_240
