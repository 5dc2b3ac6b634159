from dataclasses import replace
from datetime import timedelta

import pytest

from rackspan.advice.advice import Concern
from rackspan.audit import RackPolicy, Severity, outage
from rackspan.model import Broker, BrokerId, RackId
from rackspan.report import words
from rackspan.report.data import ClusterReport, DriftGroup, LossHistory
from rackspan.report.traffic import RackFlow
from tests.report import story
from tests.report.story import TopicPlan, spread


def only(*plans: object, **named: object) -> ClusterReport:
    cluster = story.snapshot(*plans, **{"brokers": story.SIX_BROKERS, **named})  # type: ignore[arg-type]
    return story.report_by_hand([cluster]).clusters[0]


def test_the_verdict_names_the_racks_and_what_the_worst_of_them_would_do() -> None:
    cluster = story.report_by_hand(story.shop_history(1, voters={101: "r1", 102: "r1", 103: "r3"})).clusters[0]
    assert words.headline(cluster) == (
        "This cluster does not survive the loss of r1, r2 or r3: losing rack r1 would take 15 partitions offline and "
        "stop the controllers."
    )


def test_the_verdict_on_one_bad_rack_says_that_the_others_can_be_lost() -> None:
    cluster = only([TopicPlan("audit-log", [[1]], min_insync_replicas=1)])
    assert words.headline(cluster) == (
        "Losing rack r1 would take 1 partition offline. Each of the other 2 racks can be lost."
    )


def test_the_verdict_on_a_safe_cluster_says_what_keeps_working() -> None:
    cluster = story.report_by_hand([story.safe_cluster()]).clusters[0]
    assert words.headline(cluster) == (
        "This cluster survives the loss of any one rack: no partition goes offline, none refuses acks=all and the "
        "controllers keep their majority."
    )


def test_the_verdict_on_a_cluster_that_was_read_in_part_says_so() -> None:
    cluster = replace(story.report_by_hand([story.safe_cluster()]).clusters[0], partial=("a topic was not read",))
    assert words.headline(cluster) == (
        "In what could be read no loss of one rack does harm. What is missing stands below."
    )


def test_the_majority_of_controllers_that_were_not_read_is_left_out() -> None:
    cluster = only([TopicPlan("orders", spread(6, 3))])
    assert "controllers" not in words.headline(cluster)
    assert "controller quorum is not part of the verdict" in words.caveats(cluster)[0]


def test_the_verdict_on_a_cluster_in_one_rack_names_that_rack() -> None:
    cluster = only([TopicPlan("orders", [[1, 2, 3]])], brokers={1: "a", 2: "a", 3: "a"})
    assert (
        words.headline(cluster) == "All of this cluster is in one rack: losing rack a would take 1 partition offline."
    )


def test_brokers_without_a_rack_are_one_rack_without_a_name() -> None:
    cluster = only([TopicPlan("orders", [[1, 2, 3]])], brokers={1: None, 2: None, 3: None})
    assert "losing rack (no rack) would" in words.headline(cluster)
    assert "Assumed: brokers 1,2,3 without a rack counted as one rack together." in words.caveats(cluster)


def test_what_is_harmed_already_is_counted_apart_from_what_a_loss_would_add() -> None:
    cluster = story.report_by_hand(story.shop_history(9)).clusters[0]
    assert words.already_harmed(cluster) == ("Already harmed: 4 partitions offline and 4 partitions under min ISR.")
    assert words.already_harmed(story.report_by_hand([story.safe_cluster()]).clusters[0]) is None


def test_what_could_not_be_read_is_reported() -> None:
    cluster = only([TopicPlan("orders", spread(6, 3))], partial=("log dirs of broker 3: not authorized",))
    assert words.caveats(cluster)[0] == "Could not be read: log dirs of broker 3: not authorized"


def test_controllers_of_unknown_racks_are_named() -> None:
    cluster = only([TopicPlan("orders", spread(6, 3))], voters={101: None, 102: "r1", 103: "r2"})
    assert words.caveats(cluster) == [
        "The rack of controller 101 is not known; name it in rackspan.toml under [controllers]."
    ]
    assert words.headline(cluster).startswith("This cluster does not survive the loss of r1")
    assert words.effects(cluster.losses[2]) == []


def test_many_bad_racks_are_counted_after_the_first_four() -> None:
    cluster = story.report_by_hand([story.wide_cluster(30, 1)]).clusters[0]
    assert "eu-central-1, eu-central-10, eu-central-11, eu-central-12 or 26 more racks" in words.headline(cluster)


def test_controllers_left_are_described_as_audit_describes_them() -> None:
    voters = {101: "r1", 102: "r1", 103: "r2"}
    _, losses = outage(story.snapshot([], brokers=story.SIX_BROKERS, voters=voters), RackPolicy())
    assert [words.quorum(loss) for loss in losses] == ["1 of 3: no majority", "2 of 3", "3 of 3"]
    _, losses = outage(story.empty_cluster(), RackPolicy())
    assert words.quorum(losses[0]) == "not known"


def test_what_a_loss_does_to_controllers_that_are_not_known_is_left_open() -> None:
    required = RackPolicy(require_controllers=True)
    _, [loss, *_] = outage(story.snapshot([], brokers=story.SIX_BROKERS), required)
    assert words.effects(loss) == ["leave it open whether the controllers go on: none is known"]
    _, [loss, *_] = outage(story.snapshot([], brokers=story.SIX_BROKERS), RackPolicy())
    assert words.effects(loss) == []
    voters = {101: None, 102: None, 103: "r1"}
    _, [loss, other, *_] = outage(story.snapshot([], brokers=story.SIX_BROKERS, voters=voters), RackPolicy())
    unknown = "stop the controllers if too many of 101, 102 are there, whose racks are not known"
    assert [words.effects(loss), words.effects(other)] == [[unknown], [unknown]]


def test_a_fleet_is_judged_in_one_sentence() -> None:
    safe, bad, new = [story.safe_cluster()], story.shop_history(1), [story.empty_cluster()]
    assert words.fleet_headline(story.report_by_hand(safe, safe)) == (
        "All of 2 clusters survive the loss of any one rack."
    )
    assert words.fleet_headline(story.report_by_hand(safe, bad, new)) == (
        "1 of 3 clusters does not survive the loss of a rack. 1 could not be judged."
    )
    assert words.fleet_headline(story.report_by_hand(safe, new)) == (
        "1 of 2 clusters survive the loss of any one rack. 1 could not be judged."
    )


def test_a_policy_that_counts_rackless_brokers_in_no_rack_leaves_nothing_to_lose() -> None:
    cluster = only([TopicPlan("orders", [[1]])], brokers={1: None})
    nobody = ClusterReport(
        **{field: getattr(cluster, field) for field in cluster.__slots__} | {"losses": (), "racks": ()}
    )
    assert words.headline(nobody).endswith("no broker has a rack.")
    assert Broker(BrokerId(1)).rack is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.25, "0.2 s"),
        (59.6, "1 min"),
        (380, "6 min 20 s"),
        (3600, "1 h"),
        (7501, "2 h 5 min"),
        (3 * 86400 + 60, "3 d"),
        (400 * 86400 + 7200, "400 d 2 h"),
    ],
)
def test_a_span_is_written_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert words.span(seconds) == text


def test_times_are_written_in_utc_to_the_second() -> None:
    assert words.utc(story.NOON + timedelta(microseconds=999_999)) == "2026-11-21 12:00:00 UTC"


def test_the_risk_of_one_snapshot_is_that_there_is_no_history() -> None:
    assert words.risk(story.history_of(story.report_by_hand(story.shop_history(1)).clusters[0])).startswith(
        "One snapshot so far"
    )


@pytest.mark.slow
def test_risk_is_written_as_time() -> None:
    history = story.history_of(story.report_by_hand(story.shop_history(20)).clusters[0])
    assert (
        words.risk(history) == "20 snapshots over 9 min 30 s: for 9 min 30 s of it at least one partition was not ok."
    )
    calm = story.at_times(story.safe_cluster(), [story.NOON, story.NOON + timedelta(days=2)])
    # The first of all says something for three hours.
    assert words.risk(story.history_of(story.report_by_hand(calm).clusters[0])) == (
        "Every partition was ok in all 2 snapshots over 2 d. Of 1 d 21 h nothing is known."
    )


def group(change: str, changes: int = 1, **fields: object) -> DriftGroup:
    about = {"topics": 0, "topic": None, "partition": None, "broker": None, "before": None, "after": None}
    return DriftGroup(story.NOON, change, changes, **{**about, "cause": None, "cause_broker": None, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("drift_group", "what", "where", "from_to", "cause"),
    [
        (
            group("safety-lost", 12, topics=2, topic="orders", partition=3, before="ok", after="offline",
                  cause="broker-gone", cause_broker=0),
            "12 partitions of 2 topics lost safety", "orders-3 and 11 more", "ok → offline", "broker gone: 0",
        ),
        (
            group("safety-gained", topics=1, topic="orders", partition=0, before="one-rack", cause="several"),
            "1 partition gained safety", "orders-0", "one-rack → –", "several changes together",
        ),
        (group("broker-fenced", 2, broker=4), "broker fenced", "broker 4 and 1 more", "", ""),
        (group("voter-gone", broker=101, before="r1"), "voter gone", "controller 101", "r1 → –", ""),
        (group("isr-shrunk", topics=1, topic="t", partition=1, before="1,2", after="1"), "ISR shrunk", "t-1", "1,2 → 1", ""),
    ],
)  # fmt: skip
def test_a_change_is_described_in_four_short_phrases(
    drift_group: DriftGroup, what: str, where: str, from_to: str, cause: str
) -> None:
    assert words.what_changed(drift_group) == what
    assert words.where_changed(drift_group) == where
    assert words.from_to(drift_group) == from_to
    assert words.caused_by(drift_group) == cause


@pytest.mark.slow
def test_losses_over_time_are_summed_up_in_one_sentence() -> None:
    past = story.history_of(story.report_by_hand(story.shop_history(20)).clusters[0])
    never = LossHistory(RackId("r1"), 20, 0, 0.0, None, 0, 0, 0)
    once = LossHistory(RackId("r2"), 20, 2, 60.0, story.NOON, 3, 0, 0)
    assert words.losses_over_time([never], past) == "Every rack could have been lost at any time in 20 snapshots."
    assert words.losses_over_time([once, never], past) == (
        "Rack r2 could not have been lost for 1 min of 9 min 30 s, in 2 of 20 snapshots."
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("snapshots_not_survived", "ending"),
    [
        ((20, 2), "; 1 other rack could not at times either."),
        ((2, 2, 2), "; 2 other racks could not at times either."),
        ((20, 20, 20), "; 2 other racks could not at any time either."),
        ((20, 20, 20, 2), "; 2 other racks could not at any time either, 1 more at times."),
        ((20, 0, 0), ", in 20 of 20 snapshots."),
    ],
)
def test_racks_that_could_never_be_lost_are_counted_apart_from_those_that_sometimes_could(
    snapshots_not_survived: tuple[int, ...], ending: str
) -> None:
    past = story.history_of(story.report_by_hand(story.shop_history(20)).clusters[0])
    losses = [
        LossHistory(RackId(f"r{at}"), 20, number, 30.0 * number, story.NOON if number else None, number, 0, 0)
        for at, number in enumerate(snapshots_not_survived)
    ]
    assert words.losses_over_time(losses, past).endswith(ending)


def test_traffic_says_which_hours_it_sums_up_and_what_of_them_is_known() -> None:
    traffic = story.traffic()
    assert words.traffic_span(traffic) == (
        "Sums of the 24 hours from 2026-11-20 12:00 to 2026-11-21 12:00 UTC, of which 22 hours have readings."
    )
    assert words.traffic_span(replace(traffic, hours=1)).endswith(", of which 1 hour has readings.")
    assert words.traffic_span(replace(traffic, hours=24)).endswith("12:00 UTC.")
    assert words.billed(traffic).endswith("The bill has 20 of the 22 hours.")
    assert "The bill has" not in words.billed(replace(traffic, hours_billed=22))
    assert words.incomplete(traffic.topics_incomplete).startswith(
        "Of 6 topics a part of the bytes is not known, and in no sum: orders-0, orders-1, orders-2, orders-3 and 2 more"
    )
    assert words.unread(traffic.unread) == (
        "Readings of these hours could not read all, and what they lack is in no sum: group orders: not authorized."
    )
    assert words.advice_left(replace(traffic, advice_counts={Concern.RISK: 1, Concern.MONEY: 3})) == ""


@pytest.mark.parametrize(
    ("within", "across", "unknown", "words_of_it"),
    [
        (0, 0, 0, "No bytes passed that are known."),
        (3, 1, 0, "1 B crossed racks, 25 % of what passed."),
        (1000, 1, 0, "1 B crossed racks, under 1 % of what passed."),
        (1, 1000, 0, "1000 B crossed racks, over 99 % of what passed."),
        (0, 5, 0, "5 B crossed racks, 100 % of what passed."),
        (5, 0, 0, "0 crossed racks, 0 % of what passed."),
        (1, 1, 2, "1 B crossed racks, 25 % of what passed, and of 2 B a rack is not known."),
    ],
)
def test_what_crossed_racks_stands_beside_what_passed(within: int, across: int, unknown: int, words_of_it: str) -> None:
    flows = (
        RackFlow("a", "a", {"derived": within}),
        RackFlow("a", "b", {"derived": across}),
        RackFlow("a", None, {"derived": unknown}),
    )
    assert words.crossed(replace(story.traffic(), flows=flows)) == words_of_it


def test_harm_without_a_lost_rack_is_named_as_such() -> None:
    behind = story.snapshot([TopicPlan("orders", [[1, 2, 3]])], brokers=story.SIX_BROKERS, lagging=(2, 3))
    cluster = story.report_by_hand([behind]).clusters[0]
    assert words.already_harmed(cluster) == "Already harmed, with no rack lost: 1 partition under min ISR."


def test_a_loss_that_has_happened_is_not_called_survived() -> None:
    plans = [TopicPlan("orders", [[1, 2, 3], [4, 5, 6]], min_insync_replicas=1)]
    down = story.snapshot(plans, brokers=story.SIX_BROKERS, gone=(2, 5))
    cluster = story.report_by_hand([replace(down, controllers=())])
    r1, r2, r3 = cluster.clusters[0].losses
    outcomes = [words.outcome(loss) for loss in (r1, r2, r3)]
    assert outcomes == ["can be lost", "lost", "can be lost"]
    assert [words.outcome_sign(loss) for loss in (r1, r2, r3)] == ["ok", "unknown", "ok"]
    assert words.headline(cluster.clusters[0]).startswith("This cluster survives the loss of any one more rack: ")
    assert words.effect(r2) == "Its loss has happened: the numbers are those of now."


@pytest.mark.parametrize("alive", [True, None])
def test_a_rack_whose_brokers_are_down_and_whose_controller_is_not_is_not_called_lost(alive: bool | None) -> None:
    down = story.snapshot(
        [TopicPlan("orders", [[1, 2, 3]], min_insync_replicas=1)],
        brokers=story.SIX_BROKERS,
        gone=(2, 5),
        voters={101: "r1", 102: "r2", 103: "r3"},
    )
    voters = tuple(replace(voter, alive=alive) for voter in down.controllers)
    r2 = story.report_by_hand([replace(down, controllers=voters)]).clusters[0].losses[1]
    assert (r2.lost, words.outcome(r2)) == (True, "lost, but for its controllers")
    assert words.effect(r2) == "The loss of its brokers has happened: the numbers are those of now."


def test_a_rack_that_is_down_but_for_the_controllers_of_the_majority_is_lost_in_part() -> None:
    plans = [TopicPlan("orders", [[1, 2, 3], [4, 5, 6]], min_insync_replicas=1)]
    voters = {101: "r2", 102: "r2", 103: "r3"}
    cluster = story.report_by_hand([story.snapshot(plans, brokers=story.SIX_BROKERS, gone=(2, 5), voters=voters)])
    _, r2, _ = cluster.clusters[0].losses
    assert words.outcome(r2) == "lost, but for its controllers"
    assert words.effect(r2) == "Its loss would stop the controllers."
    assert words.outcome_sign(r2) == "offline"


def test_a_fleet_counts_the_clusters_of_which_it_is_not_certain() -> None:
    calm = story.report_by_hand([story.safe_cluster("a")], [story.safe_cluster("b")])
    finding = story.report_by_hand(story.shop_history(1)).clusters[0].findings[0]
    doubtful = replace(finding, constraint="rack-names-alike", severity=Severity.VIOLATION)
    one = replace(calm, clusters=(replace(calm.clusters[0], findings=(doubtful,)), calm.clusters[1]))
    assert words.fleet_headline(one) == "1 of 2 clusters survive the loss of any one rack. 1 is not certain to."
