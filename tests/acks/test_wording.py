"""Every sentence of an advice, from advices made by hand: its words, in the singular and the plural."""

from dataclasses import replace

import pytest

from rackspan.acks.harden import HardenAdvice, HardenOutcome, RackLossCost, values_to_set
from rackspan.acks.spreads import RackSpread
from rackspan.acks.wording import kafka_configs, loss_words, reason, remedies, spread_words
from rackspan.model import RackId, TopicName

RAISE = HardenAdvice(
    topic=TopicName("orders"), internal=False, partitions=6, smallest_replication_factor=3, min_insync_racks=2,
    enforced=False, current=2, least=3, decided_by=4, spread=(2, 1), too_few_racks=0, moving=0, losses=(), better=(),
)  # fmt: skip
SUFFICES = replace(RAISE, current=3)
ENFORCED = replace(RAISE, enforced=True)
IMPOSSIBLE = replace(RAISE, too_few_racks=2)
UNSAFE = replace(RAISE, stopped=1)
NOTHING = replace(RAISE, min_insync_racks=1)
BETTER = RackSpread((2, 2), min_insync_racks=2)

REASONS = {
    "1 rack is enough": NOTHING,
    "min.insync.replicas 2 lets fewer than 2 racks acknowledge (orders-4 has 2+1 replicas per rack); 3 forces 2": RAISE,
    "min.insync.replicas 3 forces 2 racks (orders-4 has 2+1 replicas per rack)": SUFFICES,
    "min.insync.replicas 3 forces 2 racks (orders-4 has 2+1 replicas per rack); 2 would do": replace(SUFFICES, least=2),
    "the brokers enforce min.insync.racks 2 themselves; others need min.insync.replicas 3 "
    "(orders-4 has 2+1 replicas per rack)": ENFORCED,
    "no value can help: 2 of 6 partitions have replicas in fewer than 2 racks": IMPOSSIBLE,
    "no value can help: 1 of 1 partition has replicas in fewer than 2 racks": replace(
        IMPOSSIBLE, partitions=1, too_few_racks=1
    ),
    "min.insync.replicas 2 lets fewer than 2 racks acknowledge (orders-4 has 2+1 replicas per rack); 3 forces 2; a partition with "
    "fewer replicas (2) needs all in sync, and before Kafka 3.7 refuses acks=all always": replace(
        RAISE, smallest_replication_factor=2
    ),
    "min.insync.replicas 4 forces 2 racks (orders-4 has 2+1 replicas per rack); 3 would do; a partition with fewer replicas (3) "
    "needs all in sync, and before Kafka 3.7 refuses acks=all always": replace(RAISE, current=4),
    "min.insync.replicas 3 would force 2 racks (orders-4 has 2+1 replicas per rack), and stop acks=all at once on 1 and after "
    "a loss on 5 of 6 partitions that take it with 2": replace(RAISE, stopped=5, refused_at_once=1),
    "min.insync.replicas 3 would force 2 racks (orders-4 has 2+1 replicas per rack), and stop acks=all after a loss on 1 of "
    "1 partition that takes it with 2": replace(RAISE, partitions=1, stopped=1),
    "min.insync.replicas 1 lets fewer than 2 racks acknowledge (orders-4 has 2+1 replicas per rack); 3 forces 2; "
    "min.insync.replicas is not in the snapshot, and is judged as 1": replace(RAISE, current=1, known=False),
    "1 rack is enough; 1 partition being reassigned, judged by the target": replace(NOTHING, moving=1),
    "1 rack is enough; 3 partitions being reassigned, judged by the target": replace(NOTHING, moving=3),
}


@pytest.mark.parametrize("words", REASONS)
def test_the_reason_of_each_outcome(words: str) -> None:
    assert reason(REASONS[words]) == words


def test_the_outcome_follows_from_the_values() -> None:
    outcomes = [
        one.outcome for one in (NOTHING, RAISE, SUFFICES, ENFORCED, IMPOSSIBLE, replace(ENFORCED, current=3), UNSAFE)
    ]
    assert outcomes == [
        *(HardenOutcome.NOTHING_REQUIRED, HardenOutcome.RAISE, HardenOutcome.SUFFICES, HardenOutcome.ENFORCED),
        *(HardenOutcome.IMPOSSIBLE, HardenOutcome.SUFFICES, HardenOutcome.UNSAFE),
    ]
    assert [one.to_act_on for one in (NOTHING, RAISE, SUFFICES, ENFORCED, IMPOSSIBLE)] == [
        *(False, True, False, False, True),
    ]


def test_remedies_are_the_value_then_better_placements_else_racks() -> None:
    placement = "with RF 4 (2+2 replicas per rack) set 3; writes survive the loss of 1 broker: rackspan reassign plan --topic orders --replication-factor 4"
    assert remedies(RAISE) == ["min.insync.replicas=3"]
    assert remedies(replace(RAISE, known=False)) == ["min.insync.replicas=3, unless it is higher already"]
    assert remedies(replace(RAISE, better=(BETTER,))) == ["min.insync.replicas=3", placement]
    assert remedies(replace(IMPOSSIBLE, better=(BETTER,))) == [placement]
    assert remedies(IMPOSSIBLE) == ["add racks, or lower min.insync.racks: no placement on these racks can"]
    unsafe = replace(RAISE, stopped=5, first="bring back broker 3")
    assert remedies(unsafe) == ["first: bring back broker 3; then harden again"]
    assert (remedies(SUFFICES), remedies(ENFORCED), remedies(NOTHING)) == ([], [], [])


@pytest.mark.parametrize(
    ("by_value", "by_both", "partitions", "words"),
    [
        (
            2,
            1,
            6,
            "if rack a is lost, 3 of 6 partitions refuse acks=all: 2 because of the new value, 1 under min.insync.racks too",
        ),
        (1, 0, 6, "if rack a is lost, 1 of 6 partitions refuses acks=all: 1 because of the new value"),
        (0, 1, 1, "if rack a is lost, 1 of 1 partition refuses acks=all: 1 under min.insync.racks too"),
    ],
)
def test_what_the_loss_of_a_rack_costs(by_value: int, by_both: int, partitions: int, words: str) -> None:
    loss = RackLossCost(RackId("a"), by_value, by_both)
    assert loss_words(replace(RAISE, partitions=partitions), loss) == words


def test_a_spread_survives_a_rack_brokers_or_nothing() -> None:
    assert spread_words(RackSpread((1, 1, 1), min_insync_racks=2)) == (
        "with RF 3 (1+1+1 replicas per rack) set 2; writes survive the loss of any rack"
    )
    assert spread_words(RackSpread((3, 3), min_insync_racks=2)) == (
        "with RF 6 (3+3 replicas per rack) set 4; writes survive the loss of 2 brokers"
    )
    assert spread_words(RackSpread((1, 1), min_insync_racks=2)) == (
        "with RF 2 (1+1 replicas per rack) set 2; writes survive no loss"
    )


def test_a_partition_in_no_known_rack_is_named_as_such() -> None:
    assert "(orders-4 has none in a known rack replicas per rack)" in reason(replace(SUFFICES, spread=()))


def test_kafkas_own_command_sets_the_value_of_this_topic() -> None:
    assert kafka_configs(RAISE) == (
        "kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type topics --entity-name orders "
        "--add-config min.insync.replicas=3"
    )


def test_only_values_that_must_rise_are_set() -> None:
    others = [
        replace(one, topic=TopicName(f"t{at}"))
        for at, one in enumerate((NOTHING, SUFFICES, ENFORCED, IMPOSSIBLE, UNSAFE))
    ]
    assert values_to_set([*others, RAISE]) == {"orders": 3}
