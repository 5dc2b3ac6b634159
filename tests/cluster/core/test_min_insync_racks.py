"""min.insync.racks in the brokers themselves: the rule's table, its validation, its metrics, what k racks need besides."""

from itertools import combinations

import pytest

from rackspan.acks import min_insync_racks
from rackspan.acks.metrics import METRICS, MetricScope
from rackspan.cluster.core.admin_messages import (
    AdminResponse,
    AlterConfigResponse,
    AlterConfigs,
    AlterResource,
    ConfigOp,
    CreateTopics,
    DeleteTopics,
    NewTopic,
)
from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker import BrokerRules
from rackspan.cluster.core.broker.lifecycle import Phase
from rackspan.cluster.core.ids import CLIENT
from rackspan.cluster.core.messages import Produce, ProduceResponse, Respond, StartRefused
from rackspan.cluster.core.metadata import ConfigResource
from rackspan.cluster.core.settings import ClusterSettings, Elr
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId
from tests.cluster.world import World

TWO_A_RACK: dict[int, str | None] = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
ONE_A_RACK: dict[int, str | None] = {1: "a", 2: "b", 3: "c"}


def world(racks: dict[int, str | None], **changes: object) -> World:
    made = World(racks, ClusterSettings(**changes))  # type: ignore[arg-type]
    made.run(500)
    return made


def alter(w: World, kind: int, name: str, value: str | None, key: str = "min.insync.racks") -> AdminResponse:
    op = ConfigOp(key, 0 if value is not None else 1, value)
    (result,) = w.admin(lambda correlation_id: AlterConfigs(correlation_id, (AlterResource(kind, name, (op,)),)))
    return result


def result_of(w: World, correlation_id: int) -> ProduceResponse:
    w.run_until(lambda: correlation_id in w.results, 10_000)
    result = w.results[correlation_id]
    assert isinstance(result, ProduceResponse)
    return result


def refusals(w: World) -> dict[int, str]:
    return {source: effect.reason for source, effect in w.effects if isinstance(effect, StartRefused)}


def lose(w: World, *brokers: int) -> None:
    for broker in brokers:
        w.kill(broker)
    w.run(4_000)


# Section 1: the rule.


def test_before_the_append_too_few_racks_refuse_and_nothing_is_written() -> None:
    w = world(ONE_A_RACK)
    orders = w.create("orders", [1, 2, 3], min_insync_racks="2")
    w.settle()
    lose(w, 2, 3)
    result = w.produced(orders)
    assert result.error is ErrorCode.NOT_ENOUGH_RACKS
    assert result.message == "orders-0: in-sync racks a = 1 < min.insync.racks 2"
    assert w.disks[1].logs[orders].end_offset == 0


def test_two_brokers_of_one_rack_are_one_rack() -> None:
    w = world(TWO_A_RACK)
    orders = w.create("orders", [1, 2, 3], min_insync_racks="2")
    w.settle()
    lose(w, 3)
    assert w.isr(orders) == {1, 2}
    assert w.produced(orders).error is ErrorCode.NOT_ENOUGH_RACKS


def test_six_brokers_in_three_racks_refuse_acks_all_while_a_rack_is_down_and_accept_it_when_it_is_back() -> None:
    w = world(TWO_A_RACK)
    orders = w.create("orders", [1, 3, 5], min_insync_racks="3")
    w.settle()
    assert w.produced(orders).error is ErrorCode.NONE
    lose(w, 5, 6)
    assert w.isr(orders) == {1, 3}
    assert w.produced(orders).error is ErrorCode.NOT_ENOUGH_RACKS
    w.start(5)
    w.start(6)
    w.settle()
    assert w.produced(orders).error is ErrorCode.NONE


FIVE: dict[int, str | None] = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
"""The proposal's example: three zones and five replicas, so 2, 2 and 1."""

LOST = [set(lost) for size in range(5) for lost in combinations(FIVE, size)]


@pytest.mark.parametrize("racks", [1, 2])
@pytest.mark.parametrize("lost", LOST, ids=str)
def test_five_replicas_over_three_zones_are_acknowledged_across_two_zones_or_not_at_all(
    lost: set[int], racks: int
) -> None:
    """min.insync.replicas=2 and min.insync.racks=2, whatever brokers are lost before. With 1 rack, 2 replicas suffice."""
    w = world(FIVE)
    orders = w.create("orders", [1, 2, 3, 4, 5], min_insync_replicas="2", min_insync_racks=str(racks))
    w.settle()
    lose(w, *lost)
    left = set(FIVE) - lost
    zones = {FIVE[broker] for broker in left}
    assert w.isr(orders) == left
    error = ErrorCode.NONE if len(zones) >= racks else ErrorCode.NOT_ENOUGH_RACKS
    assert w.produced(orders).error is (ErrorCode.NOT_ENOUGH_REPLICAS if len(left) < 2 else error)
    written = error is ErrorCode.NONE and len(left) >= 2
    holders = {broker for broker in left if w.disks[broker].logs[orders].end_offset == 1}
    assert holders == (left if written else set())


@pytest.mark.parametrize("zone", ["a", "b", "c"])
def test_a_record_acknowledged_across_two_zones_outlives_the_loss_of_either(zone: str) -> None:
    """The fewest replicas that may acknowledge: one in each of two zones."""
    kept = {"a": {3, 5}, "b": {1, 5}, "c": {1, 3}}[zone]
    w = world(FIVE)
    orders = w.create("orders", [1, 2, 3, 4, 5], min_insync_replicas="2", min_insync_racks="2")
    w.settle()
    lose(w, *(set(FIVE) - kept))
    assert w.produced(orders).error is ErrorCode.NONE
    for lost in kept:
        (survivor,) = kept - {lost}
        assert w.disks[survivor].logs[orders].end_offset == 1
    lose(w, max(kept))
    assert w.state(orders).leader == min(kept)
    assert w.produced(orders).error is ErrorCode.NOT_ENOUGH_REPLICAS


def test_each_threshold_alone_gives_its_own_error_and_replicas_go_first() -> None:
    w = world(ONE_A_RACK)
    by_replicas = w.create("r", [1, 2, 3], min_insync_replicas="2")
    by_both = w.create("b", [1, 2, 3], min_insync_replicas="2", min_insync_racks="2")
    w.settle()
    lose(w, 2, 3)
    assert w.produced(by_replicas).error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert w.produced(by_both).error is ErrorCode.NOT_ENOUGH_REPLICAS


@pytest.mark.parametrize("acks", [0, 1])
def test_fewer_acks_than_all_are_never_checked(acks: int) -> None:
    w = world(ONE_A_RACK)
    orders = w.create("orders", [1, 2, 3], min_insync_racks="3")
    w.settle()
    lose(w, 2, 3)
    assert w.produced(orders, acks=acks).error is ErrorCode.NONE


def test_the_watermark_does_not_move_while_racks_are_missing_and_produces_time_out() -> None:
    w = world(ONE_A_RACK, replica_lag_time_max_ms=400)
    orders = w.create("orders", [1, 2, 3], min_insync_racks="2")
    w.settle()
    w.freeze(2, w.now + 60_000)
    w.freeze(3, w.now + 60_000)
    correlation_id = w.produce(1, orders, timeout_ms=2_000)
    assert result_of(w, correlation_id).error is ErrorCode.REQUEST_TIMED_OUT
    assert w.isr(orders) == {1}
    assert (w.disks[1].logs[orders].end_offset, w.disks[1].logs[orders].high_watermark) == (1, 0)
    assert w.broker(1).counters.rack_check_failures == 1


class WatermarkByReplicas(BrokerRules):
    """Kafka's own rule for the watermark: racks do not hold it."""

    def watermark_may_advance(self, *_arguments: object) -> bool:
        return True


def test_before_the_response_the_isr_is_checked_again() -> None:
    settings = ClusterSettings(replica_lag_time_max_ms=400)
    w = World(ONE_A_RACK, settings, broker_rules=WatermarkByReplicas())
    w.run(500)
    orders = w.create("orders", [1, 2, 3], min_insync_racks="2")
    w.settle()
    w.freeze(2, w.now + 60_000)
    w.freeze(3, w.now + 60_000)
    result = result_of(w, w.produce(1, orders))
    assert result.error is ErrorCode.NOT_ENOUGH_RACKS_AFTER_APPEND
    assert w.disks[1].logs[orders].end_offset == 1


def test_a_duplicate_waits_for_the_watermark_like_the_original() -> None:
    w = world(ONE_A_RACK)
    orders = w.create("orders", [1, 2, 3], min_insync_racks="2")
    w.settle()
    w.freeze(2, w.now + 1_000)
    w.freeze(3, w.now + 1_000)
    batch = RecordBatch(0, 0, -1, b"", 9, 0, 0)
    first, again = w.produce(1, orders, batch), w.produce(1, orders, batch)
    w.run(500)
    assert not {first, again} & set(w.results)
    assert [result_of(w, correlation_id).base_offset for correlation_id in (first, again)] == [0, 0]
    assert w.disks[1].logs[orders].end_offset == 1


def test_brokers_without_a_rack_share_the_unnamed_one() -> None:
    w = world({1: None, 2: None, 3: "c"})
    orders = w.create("orders", [1, 2, 3], min_insync_racks="2")
    w.settle()
    lose(w, 3)
    assert w.produced(orders).error is ErrorCode.NOT_ENOUGH_RACKS


def test_a_topics_value_goes_before_a_brokers_and_a_brokers_before_the_default() -> None:
    w = world(ONE_A_RACK)
    orders, other = w.create("orders", [1, 2, 3]), w.create("other", [1, 2, 3])
    w.settle()
    assert alter(w, 4, "", "3").error is ErrorCode.NONE
    assert alter(w, 2, "orders", "1").error is ErrorCode.NONE
    lose(w, 3)
    assert w.produced(orders).error is ErrorCode.NONE
    assert w.produced(other).error is ErrorCode.NOT_ENOUGH_RACKS


def test_lowered_during_an_outage_producers_go_on_and_restored_it_rejects_nothing() -> None:
    w = world(ONE_A_RACK)
    orders = w.create("orders", [1, 2, 3], min_insync_racks="3")
    w.settle()
    lose(w, 3)
    assert w.produced(orders).error is ErrorCode.NOT_ENOUGH_RACKS
    alter(w, 2, "orders", "2")
    w.run(20)
    assert w.produced(orders).error is ErrorCode.NONE
    w.start(3)
    w.settle()
    alter(w, 2, "orders", "3")
    w.run(20)
    assert w.produced(orders).error is ErrorCode.NONE


def test_lowering_the_value_acknowledges_waiting_produces() -> None:
    w = world(ONE_A_RACK, replica_lag_time_max_ms=400)
    orders = w.create("orders", [1, 2, 3], min_insync_racks="2")
    w.settle()
    w.freeze(2, w.now + 60_000)
    w.freeze(3, w.now + 60_000)
    correlation_id = w.produce(1, orders, timeout_ms=30_000)
    w.run(4_000)
    assert correlation_id not in w.results
    alter(w, 2, "orders", "1")
    w.run(20)
    assert result_of(w, correlation_id).error is ErrorCode.NONE


def test_with_the_value_one_racks_are_never_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = 0

    def count(*_arguments: object) -> int:
        nonlocal counted
        counted += 1
        return 9

    monkeypatch.setattr(min_insync_racks.RackBits, "count", count)
    w = world(ONE_A_RACK)
    orders = w.create("orders", [1, 2, 3], min_insync_replicas="2")
    w.settle()
    assert all(w.produced(orders).error is ErrorCode.NONE for _ in range(20))
    assert counted == 0


def test_a_coordinators_own_append_is_subject_to_the_rule() -> None:
    """Markers, offsets and the transaction log are acks=all appends like others."""
    w = world(ONE_A_RACK)
    offsets = w.create("__consumer_offsets", [1, 2, 3], min_insync_racks="2")
    w.settle()
    lose(w, 2, 3)
    correlation_id = 1_000_000
    internal = Produce(correlation_id, offsets, (RecordBatch(0, 0, -1),), internal=True)
    (effect,) = w.broker(1).on_message(w.now, CLIENT, internal)
    assert isinstance(effect, Respond)
    assert isinstance(effect.response, ProduceResponse)
    assert effect.response.error is ErrorCode.NOT_ENOUGH_RACKS


def test_more_replicas_than_there_are_are_never_required_but_more_racks_are() -> None:
    """Real Kafka 3.9 and 4.1 acknowledge acks=all with one replica and min.insync.replicas=2."""
    w = world(ONE_A_RACK)
    single = w.create("single", [1], min_insync_replicas="2")
    racks = w.create("racks", [1], min_insync_racks="2")
    w.settle()
    assert w.produced(single).error is ErrorCode.NONE
    assert w.produced(racks).error is ErrorCode.NOT_ENOUGH_RACKS


def test_the_only_replica_needs_no_elr_and_comes_back_to_lead() -> None:
    w = world(ONE_A_RACK, elr=Elr.KAFKA)
    pair = w.create("pair", [1, 2], min_insync_replicas="3")
    w.settle()
    lose(w, 2)
    assert w.state(pair).elr == (2,)
    w.start(2)
    w.settle()
    assert (w.state(pair).isr, w.state(pair).elr) == ((1, 2), ())
    assert w.produced(pair).error is ErrorCode.NONE


# Section 3: validation.


@pytest.mark.parametrize("text", ["0", "-1", "two", "", "2147483648"])
def test_a_value_that_is_no_whole_number_of_at_least_one_is_refused_everywhere(text: str) -> None:
    w = world(ONE_A_RACK)
    new = NewTopic("orders", 1, 3, configs={"min.insync.racks": text})
    (created,) = w.admin(lambda correlation_id: CreateTopics(correlation_id, (new,)))
    assert created.error is ErrorCode.INVALID_CONFIG
    assert "min.insync.racks" in (created.message or "")
    w.create("orders", [1, 2, 3])
    for kind, name in ((2, "orders"), (4, ""), (4, "1")):
        assert alter(w, kind, name, text).error is ErrorCode.INVALID_CONFIG


def test_a_broker_without_a_rack_refuses_a_dynamic_value_above_one_and_nothing_changes() -> None:
    w = world({1: None, 2: "b", 3: "c"})
    before = w.controller.image.configs
    assert alter(w, 4, "1", "2").error is ErrorCode.INVALID_CONFIG
    assert alter(w, 4, "", "2").error is ErrorCode.INVALID_CONFIG
    assert w.controller.image.configs == before
    assert alter(w, 4, "2", "2").error is ErrorCode.NONE


def test_a_broker_without_a_rack_does_not_start_with_a_value_above_one() -> None:
    w = world({1: None, 2: "b", 3: "c"}, min_insync_racks=2)
    assert set(w.controller.image.brokers) == {2, 3}
    assert refusals(w) == {1: "min.insync.racks 2: this broker has no broker.rack; set it, or leave the value at 1"}
    assert w.broker(1).phase is Phase.REFUSED


@pytest.mark.parametrize(
    ("own", "everyones", "static", "starts"),
    [
        (None, None, 2, False),
        (None, "2", 1, False),
        ("2", None, 1, False),
        ("2", "1", 1, False),
        # The most specific value applies, as for every broker config.
        ("1", "2", 2, True),
        (None, "1", 2, True),
        ("1", None, 2, True),
        (None, None, 1, True),
    ],
)
def test_a_broker_that_lost_its_rack_starts_by_the_value_that_applies_to_it(
    own: str | None, everyones: str | None, static: int, starts: bool
) -> None:
    w = world(ONE_A_RACK, min_insync_racks=static)
    for name, value in (("1", own), ("", everyones)):
        if value is not None:
            assert alter(w, 4, name, value).error is ErrorCode.NONE
    w.kill(1)
    w.rack_of[1] = None
    w.start(1)
    w.run(5_000)
    assert (w.broker(1).phase is Phase.RUNNING) is starts
    assert w.controller.image.brokers[BrokerId(1)].fenced is not starts


def test_a_value_of_its_own_cannot_be_deleted_where_a_broker_without_a_rack_then_gets_one_above_one() -> None:
    w = world(ONE_A_RACK)
    alter(w, 4, "1", "1")
    alter(w, 4, "", "2")
    w.kill(1)
    w.rack_of[1] = None
    w.start(1)
    w.run(500)
    assert alter(w, 4, "1", None).error is ErrorCode.INVALID_CONFIG
    replacement = AlterResource(4, "1", (ConfigOp("message.max.bytes", 0, "2000000"),))
    (replaced,) = w.admin(lambda correlation_id: AlterConfigs(correlation_id, (replacement,), replace=True))
    assert replaced.error is ErrorCode.INVALID_CONFIG
    assert alter(w, 4, "", None).error is ErrorCode.NONE
    assert alter(w, 4, "1", None).error is ErrorCode.NONE


def test_alter_configs_resets_a_value_that_it_does_not_name_as_kafka_does() -> None:
    """Here every value is Kafka's own. A gateway keeps it: tests/gateway/handlers/test_config_rules.py."""
    w = world(ONE_A_RACK)
    w.create("t", [1, 2])
    w.settle()
    assert alter(w, 2, "t", "2").error is ErrorCode.NONE
    others = AlterResource(2, "t", (ConfigOp("retention.ms", 0, "5000"),))
    (altered,) = w.admin(lambda correlation_id: AlterConfigs(correlation_id, (others,), replace=True))
    assert altered.error is ErrorCode.NONE
    assert w.controller.image.config_of(ConfigResource(ConfigResourceType.TOPIC, "t")) == {"retention.ms": "5000"}


def test_a_default_that_does_not_apply_to_the_broker_without_a_rack_is_accepted() -> None:
    w = world({1: None, 2: "b", 3: "c"})
    alter(w, 4, "1", "1")
    assert alter(w, 4, "", "2").error is ErrorCode.NONE


@pytest.mark.parametrize("level", ["static", "default", "own"])
def test_at_start_a_value_above_the_known_racks_is_warned_of_wherever_it_is_set(level: str) -> None:
    w = world(ONE_A_RACK, min_insync_racks=4 if level == "static" else 1)
    if level != "static":
        assert alter(w, 4, "1" if level == "own" else "", "4").error is ErrorCode.NONE
        w.effects.clear()
        w.kill(1)
        w.start(1)
        w.run(500)
    warning = "broker 1: min.insync.racks 4: the cluster has 3 racks; acks=all is refused until it has more"
    assert w.warnings().count(warning) == 1


def test_at_start_a_value_that_the_cluster_has_racks_for_is_not_warned_of() -> None:
    """Not even by the first broker, which is registered before there are other racks."""
    assert world(ONE_A_RACK, min_insync_racks=3).warnings() == []


def test_what_is_accepted_though_odd_is_warned_of_once_with_names_and_numbers() -> None:
    w = world({1: None, 2: "b", 3: "c"})
    w.create("orders", [1, 2, 3], min_insync_racks="9")
    assert any("unnamed rack: 1" in warning for warning in w.warnings())
    assert any("9" in warning and "3 racks" in warning for warning in w.warnings())
    result = alter(w, 2, "orders", "8")
    assert isinstance(result, AlterConfigResponse)
    assert len(result.warnings) == 2


# Section 5: metrics.


def test_metrics_show_under_at_and_how_many() -> None:
    w = world(ONE_A_RACK)
    orders = w.create("orders", [1, 2, 3], min_insync_racks="3")
    w.settle()
    leader = w.broker(1)
    assert set(leader.metrics()) | set(leader.partition_metrics()[orders]) == {metric.name for metric in METRICS}
    assert leader.metrics()["rackspan_at_min_rack_isr_partitions"] == 1
    lose(w, 3)
    w.produced(orders)
    assert leader.metrics() == {
        "rackspan_under_min_rack_isr_partitions": 1,
        "rackspan_at_min_rack_isr_partitions": 0,
        "rackspan_rack_check_failures_total": 1,
    }
    assert leader.partition_metrics()[orders]["rackspan_partition_isr_racks"] == 2
    assert {metric.scope for metric in METRICS} == {MetricScope.PARTITION, MetricScope.BROKER}


# Section 9: what k racks need besides.


def test_a_broker_that_lost_power_is_not_electable_until_it_has_caught_up() -> None:
    """Two racks; one freezes and leaves the ISR, the other loses its tail: it must not lead (P1)."""
    w = world({1: "a", 2: "b"}, replica_lag_time_max_ms=400)
    orders = w.create("orders", [2, 1], min_insync_racks="1")
    w.settle()
    w.freeze(1, w.now + 60_000)
    w.run(5_000)
    assert w.isr(orders) == {2}
    assert w.produced(orders).error is ErrorCode.NONE
    w.kill(2, lost=1)
    w.start(2)
    w.run(3_000)
    assert (w.state(orders).leader, w.state(orders).isr) == (-1, ())


def test_a_killed_process_whose_disk_lost_nothing_leads_again() -> None:
    w = world({1: "a"})
    orders = w.create("orders", [1])
    w.settle()
    assert w.produced(orders).error is ErrorCode.NONE
    w.kill(1)
    w.start(1)
    w.run(2_000)
    assert w.state(orders).leader == 1
    assert w.produced(orders).base_offset == 1


@pytest.mark.parametrize(("elr", "leader"), [("racks", 3), ("kafka", -1), ("off", -1)])
def test_after_the_loss_of_a_rack_an_elr_that_counts_racks_leaves_a_clean_leader(elr: str, leader: int) -> None:
    """b leaves the ISR, and a is lost: only the rack-counting ELR still shows that b holds all that was acknowledged."""
    w = world({1: "a", 2: "a", 3: "b"}, elr=Elr(elr))
    orders = w.create("orders", [1, 2, 3], min_insync_racks="2")
    w.settle()
    assert w.produced(orders).error is ErrorCode.NONE
    w.isolate(3)
    w.run(4_000)
    assert w.isr(orders) == {1, 2}
    w.isolate(1)
    w.isolate(2)
    w.cut = {pair for pair in w.cut if 3 not in pair}
    w.run(8_000)
    assert w.state(orders).leader == leader


def test_a_follower_that_returns_before_its_leader_has_the_metadata_counts_once_it_has() -> None:
    w = world(ONE_A_RACK)
    orders = w.create("orders", [1, 2, 3])
    w.settle()
    w.kill(3)
    w.run(4_000)
    w.cut.add((-1, 1))
    w.start(3)
    w.run(1_000)
    assert w.isr(orders) == {1, 2}
    w.cut.clear()
    w.run(4_500)
    assert w.isr(orders) == {1, 2, 3}


def test_a_fetch_from_a_process_that_is_not_in_the_image_does_not_move_the_watermark() -> None:
    w = world(ONE_A_RACK)
    orders = w.create("orders", [1, 2, 3], min_insync_racks="3")
    w.settle()
    # The leader gets no metadata: in its image broker 3 is the old process, in its old rack.
    w.cut.add((-1, 1))
    w.kill(3)
    w.rack_of[3] = "a"
    w.start(3)
    correlation_id = w.produce(1, orders, timeout_ms=60_000)
    w.run(1_500)
    assert w.disks[3].logs[orders].end_offset == 1
    assert correlation_id not in w.results
    assert w.disks[1].logs[orders].high_watermark == 0


def test_a_topic_of_a_deleted_topics_name_has_its_own_threshold() -> None:
    w = World({1: "a", 2: "b"})
    w.run(500)
    orders = w.create("orders", [1, 2], min_insync_racks="2")
    w.settle()
    w.admin(lambda correlation_id: DeleteTopics(correlation_id, ("orders",)))
    w.run(200)
    w.create("orders", [1, 2])
    w.settle()
    assert w.broker(1).leaders[orders].required.min_insync_racks == 1
