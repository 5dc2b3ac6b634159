from dataclasses import replace
from random import Random

import pytest

from rackspan.errors import InvalidGroup, RackspanError
from rackspan.model.group import GroupDescription, GroupKind, MemberDescription, StreamsMember, SubtopologyTopics
from rackspan.model.ids import RackId
from rackspan.streams import audit_group, capture_group
from rackspan.streams.live.streams_group import streams_group
from tests.streams.groups import PROCESS, cluster, described, member
from tests.streams.user_data.test_subscription_info import mutated

ONE = member("a", active={"0_0": ["orders:0"], "0_1": ["orders:1"]})
TWICE = member("a", active={"0_10": ["orders:10"], "0_2": ["orders:2"]})


def test_threads_of_one_process_are_one_client() -> None:
    group = streams_group(
        described(
            member("b", process=2, rack="r2", active={"1_0": ["x:0", "y:0"]}),
            member("a", process=1, active={"0_0": ["orders:0"]}, offset_sums={"0_0": -2}),
            member("a", process=1, active={"0_1": ["orders:1"]}, standby={"1_0": ["x:0", "y:0"]}),
        )
    )
    assert [(one.name, one.process_id, len(one.threads)) for one in group.processes] == [
        ("a", PROCESS.format(1), 2),
        ("b", PROCESS.format(2), 1),
    ]
    assert [(sorted(one.active), sorted(one.standby)) for one in group.processes] == [
        (["0_0", "0_1"], ["1_0"]),
        (["1_0"], []),
    ]
    assert group.sources == {
        "0_0": {("orders", 0)},
        "0_1": {("orders", 1)},
        "1_0": {("x", 0), ("y", 0)},
    }
    assert group.tasks_of == {"0": 2, "1": 1}
    assert group.families_with_state == {"0", "1"}


def test_tasks_are_in_kafkas_order_not_in_the_alphabets() -> None:
    tasks = {f"0_{at}": [f"orders:{at}"] for at in range(12)}
    assert list(streams_group(described(member("a", active=tasks))).sources) == [f"0_{at}" for at in range(12)]


def test_an_error_code_of_the_last_assignment_is_noted() -> None:
    group = streams_group(described(member("a", active={"0_0": ["orders:0"]}, error_code=4)))
    assert group.notes() == ["client a: a shutdown was requested, says the last assignment"]


def test_the_error_codes_of_a_process_are_noted_the_lowest_first() -> None:
    threads = [member("a", active={f"0_{at}": [f"orders:{at}"]}, error_code=code) for at, code in enumerate((9, 2))]
    assert streams_group(described(*threads)).notes() == [
        "client a: versions are being probed, says the last assignment",
        "client a: error 9, says the last assignment",
    ]


def test_of_a_member_of_a_kip_1071_group_no_error_is_noted() -> None:
    running = StreamsMember(PROCESS.format(1), {}, {"0": (0,)}, {}, {})
    group = GroupDescription(
        "shop",
        "Stable",
        "streams",
        "",
        (MemberDescription("a", "a", rack=RackId("r1"), streams=running),),
        kind=GroupKind.STREAMS,
        topology={"0": SubtopologyTopics(("orders",), ())},
    )
    assert streams_group(replace(group, protocol="sticky")).notes() == [
        "its brokers assign its tasks by the assignor sticky (KIP-1071) and look at no racks: "
        "strategies are those of the classic protocol"
    ]
    assert streams_group(group).notes() == [
        "its brokers assign its tasks (KIP-1071) and look at no racks: strategies are those of the classic protocol"
    ]


def test_a_member_too_old_to_send_its_rack_is_noted() -> None:
    group = streams_group(described(member("a", active={"0_0": ["orders:0"]}, protocol_version=1)))
    assert group.notes() == ["client a is older than Kafka 3.4 and does not report its rack; upgrade it"]


@pytest.mark.parametrize(
    ("group", "line"),
    [
        (
            described(state="Dead", error_message="Group shop not found"),
            "group shop: Group shop not found; see kafka-groups --list for those there are",
        ),
        (described(state="Dead"), "group shop: not found; see kafka-groups --list for those there are"),
        (described(state="Empty", protocol=""), "group shop has no members; start the application and run again"),
        (described(), "group shop has no members; start the application and run again"),
        (
            described(ONE, state="PreparingRebalance"),
            "group shop is rebalancing (PreparingRebalance); wait until it is Stable and run again",
        ),
        (
            described(ONE, state="CompletingRebalance"),
            "group shop is rebalancing (CompletingRebalance); wait until it is Stable and run again",
        ),
        (
            described(ONE, protocol="range"),
            "group shop is not a Kafka Streams group: its assignor is 'range', not 'stream'; name one that is",
        ),
        (
            described(ONE, protocol_type="connect", protocol="sessioned"),
            "group shop is of type connect, not of consumers; name a Kafka Streams group",
        ),
        (
            described(ONE, member("b", process=2, active={"0_0": ["orders:0"]})),
            "group shop: task 0_0 runs on two threads; a rebalance is under way, run again",
        ),
        (
            described(TWICE, replace(TWICE, member_id="b")),
            "group shop: task 0_2 runs on two threads; a rebalance is under way, run again",
        ),
        (
            described(member("a", active={"0_0": ["orders:0"], "0_2": ["orders:2"]})),
            "group shop: task 0_2 runs where task 0_1 does not; a rebalance is under way, run again",
        ),
        (
            described(member("a", active={"0_0": ["orders:0"]}, standby={"1_7": ["x:7"]})),
            "group shop: task 1_7 runs nowhere just now; a rebalance is under way, run again",
        ),
    ],
)
def test_a_group_that_cannot_be_decoded_gets_one_line(group: GroupDescription, line: str) -> None:
    with pytest.raises(InvalidGroup) as refused:
        streams_group(group)
    assert str(refused.value) == line


@pytest.mark.slow
def test_10000_groups_with_a_corrupted_member_are_decoded_or_refused_in_one_line() -> None:
    """Up to the audit: a group that can be decoded has costs, or a reason why not."""
    rng = Random(7)
    good = member("b", process=2, rack="r2", active={"1_0": ["x:0"]}, standby={"0_0": ["orders:0"]}, tags={"zone": "z"})
    snapshot = cluster({"orders": [[1], [2]], "x": [[1]], "shop-s-changelog": [[1], [2]]})
    priced, lines = 0, []
    for _ in range(10_000):
        try:
            group = streams_group(described(good, corrupted(ONE, rng)))
            if rng.random() < 0.05:
                audit_group(group, capture_group(group, snapshot, {}))
                priced += 1
        except RackspanError as error:
            lines.append(str(error))
    assert priced > 10
    assert 5_000 < len(lines) < 10_000
    assert not any("\n" in line for line in lines)


def corrupted(one: MemberDescription, rng: Random) -> MemberDescription:
    if rng.random() < 0.5:
        return replace(one, metadata=mutated(one.metadata, rng))
    return replace(one, assignment=mutated(one.assignment, rng))
