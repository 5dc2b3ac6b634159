"""Groups of all four kinds as their coordinators describe them, and what is reported of those that cannot be read."""

import re
from struct import pack

import pytest

from rackspan.client.cluster import ConnectionSettings
from rackspan.client.connection import UnsupportedVersion
from rackspan.errors import ClusterRequestFailed, ClusterUnauthorized
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.group import GroupDescription, GroupKind, StreamsMember, SubtopologyTopics
from rackspan.model.ids import TopicPartition
from rackspan.sources.live import groups
from rackspan.sources.live.groups import describe_all, read_group
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.group_kinds import (
    ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseData,
    ConsumerGroupDescribeResponseDescribedGroup,
    ConsumerGroupDescribeResponseMember,
    ConsumerGroupDescribeResponseTopicPartitions,
    KeyValue,
    ShareGroupDescribeResponseData,
    ShareGroupDescribeResponseDescribedGroup,
    ShareGroupDescribeResponseMember,
    StreamsGroupDescribeResponseAssignment,
    StreamsGroupDescribeResponseData,
    StreamsGroupDescribeResponseDescribedGroup,
    StreamsGroupDescribeResponseMember,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)
from rackspan.wire.messages.groups import (
    DescribedGroupMember,
    DescribeGroupsResponseData,
    DescribeGroupsResponseDescribedGroup,
    FindCoordinatorResponseData,
    ListGroupsResponseData,
)
from tests.scripted_connection import Respond, ScriptedConnection, listing


def text(value: str) -> bytes:
    return pack(">h", len(value)) + value.encode()


SUBSCRIPTION = pack(">hi", 3, 1) + text("orders") + pack(">i", -1) + pack(">ii", 0, -1) + text("r1")
"""ConsumerProtocolSubscription, version 3: the topic orders, no user data, nothing owned, generation -1, rack r1."""
ASSIGNMENT = pack(">hi", 3, 1) + text("orders") + pack(">iii", 2, 0, 2) + pack(">i", -1)
"""ConsumerProtocolAssignment, version 3: partitions 0 and 2 of orders."""


def classic(
    group: str, protocol_type: str = "consumer", member: DescribedGroupMember | None = None, error_code: int = 0
) -> DescribeGroupsResponseDescribedGroup:
    return DescribeGroupsResponseDescribedGroup(
        group_id=group,
        group_state="Stable",
        protocol_type=protocol_type,
        protocol_data="range",
        members=[] if member is None else [member],
        error_code=error_code,
    )


def describing(error_code: int = 0) -> Respond:
    return lambda request, _: DescribeGroupsResponseData(
        groups=[classic(group, error_code=error_code) for group in request.groups]
    )


MEMBER = DescribedGroupMember(
    member_id="m", client_id="c", client_host="/10.0.0.1", member_metadata=SUBSCRIPTION, member_assignment=ASSIGNMENT
)
AT_2: Respond = lambda *_: FindCoordinatorResponseData(node_id=2)  # noqa: E731
NOT_FOUND: Respond = lambda request, _: DescribeGroupsResponseData(  # noqa: E731
    groups=[
        DescribeGroupsResponseDescribedGroup(
            group_id=request.groups[0], error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message="Group g not found."
        )
    ]
)


@pytest.fixture
def settings() -> ConnectionSettings:
    return ConnectionSettings("127.0.0.1:1")


def described(
    monkeypatch: pytest.MonkeyPatch, script: dict[ApiKey, Respond], seconds_each: float = 0.0
) -> tuple[GroupDescription, ScriptedConnection]:
    connection = ScriptedConnection({ApiKey.FIND_COORDINATOR: AT_2, **script}, seconds_each)
    monkeypatch.setattr(groups, "ClusterConnection", connection)
    monkeypatch.setattr(groups, "_PAUSE_SECONDS", 0.001)
    return read_group(ConnectionSettings("127.0.0.1:1"), "g"), connection


def test_a_classic_group_is_described_by_its_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    found, connection = described(
        monkeypatch,
        {ApiKey.DESCRIBE_GROUPS: lambda *_: DescribeGroupsResponseData(groups=[classic("g", member=MEMBER)])},
    )
    assert connection.requests == [(ApiKey.FIND_COORDINATOR, None), (ApiKey.DESCRIBE_GROUPS, 2)]
    assert (found.group_id, found.state, found.protocol_type, found.protocol) == ("g", "Stable", "consumer", "range")
    assert (found.kind, found.error_message) == (GroupKind.CLASSIC, None)
    [member] = found.members
    assert (member.member_id, member.client_id, member.host) == ("m", "c", "10.0.0.1")
    assert (member.metadata, member.assignment) == (SUBSCRIPTION, ASSIGNMENT)
    assert (member.rack, member.declares_rack, member.topics) == ("r1", True, frozenset({"orders"}))
    assert member.partitions == (TopicPartition("orders", 0), TopicPartition("orders", 2))


@pytest.mark.parametrize(
    ("protocol_type", "metadata", "declares", "topics"),
    [
        ("connect", SUBSCRIPTION, False, None),
        ("consumer", b"", False, None),
        ("consumer", pack(">h", 1) + SUBSCRIPTION[2:], False, {"orders"}),
    ],
    ids=["of another protocol", "that joins", "of an old client"],
)
def test_a_member_without_a_rack_field_is_one(
    monkeypatch: pytest.MonkeyPatch, protocol_type: str, metadata: bytes, declares: bool, topics: set[str] | None
) -> None:
    member = DescribedGroupMember(member_id="m", client_host="h", member_metadata=metadata)
    found, _ = described(
        monkeypatch,
        {ApiKey.DESCRIBE_GROUPS: lambda *_: DescribeGroupsResponseData(groups=[classic("g", protocol_type, member)])},
    )
    [read] = found.members
    assert (read.rack, read.declares_rack, read.topics, read.partitions) == (None, declares, topics, ())


STREAMS = StreamsGroupDescribeResponseDescribedGroup(
    group_id="g",
    group_state="Stable",
    topology=Topology(
        subtopologies=[
            Subtopology(
                subtopology_id="0",
                source_topics=["orders"],
                repartition_source_topics=[TopicInfo(name="by-user")],
                state_changelog_topics=[TopicInfo(name="counts-changelog")],
            )
        ]
    ),
    members=[
        StreamsGroupDescribeResponseMember(
            member_id="m",
            client_id="c",
            client_host="/10.0.0.1",
            rack_id="r1",
            process_id="p",
            client_tags=[KeyValue(key="zone", value="z1")],
            task_offsets=[TaskOffset(subtopology_id="0", partition=2, offset=9)],
            assignment=StreamsGroupDescribeResponseAssignment(
                active_tasks=[TaskIds(subtopology_id="0", partitions=[0])],
                standby_tasks=[TaskIds(subtopology_id="0", partitions=[1])],
                warmup_tasks=[TaskIds(subtopology_id="0", partitions=[2])],
            ),
        ),
        StreamsGroupDescribeResponseMember(member_id="n"),
    ],
)


def test_a_group_that_is_not_classic_is_described_as_a_streams_group(monkeypatch: pytest.MonkeyPatch) -> None:
    found, connection = described(
        monkeypatch,
        {
            ApiKey.DESCRIBE_GROUPS: NOT_FOUND,
            ApiKey.STREAMS_GROUP_DESCRIBE: lambda *_: StreamsGroupDescribeResponseData(groups=[STREAMS]),
        },
    )
    assert connection.requests[-1] == (ApiKey.STREAMS_GROUP_DESCRIBE, 2)
    assert (found.kind, found.state, found.protocol_type, found.protocol) == ("streams", "Stable", "streams", "")
    of_kafka_4_4 = StreamsGroupDescribeResponseDescribedGroup(group_id="g", assignor_name="sticky")
    found_by, _ = described(
        monkeypatch,
        {
            ApiKey.DESCRIBE_GROUPS: NOT_FOUND,
            ApiKey.STREAMS_GROUP_DESCRIBE: lambda *_: StreamsGroupDescribeResponseData(groups=[of_kafka_4_4]),
        },
    )
    assert found_by.protocol == "sticky"
    assert found.topology == {"0": SubtopologyTopics(("orders", "by-user"), ("counts-changelog",))}
    first, second = found.members
    assert (first.member_id, first.client_id, first.host, first.rack) == ("m", "c", "10.0.0.1", "r1")
    assert first.streams == StreamsMember(
        "p", {"zone": "z1"}, {"0": (0,)}, {"0": (1,)}, {"0": (2,)}, offsets={("0", 2): 9}
    )
    assert (second.rack, second.streams) == (None, StreamsMember("", {}, {}, {}, {}, offsets=None))


@pytest.mark.parametrize(
    "streams",
    [
        UnsupportedVersion(ApiKey.STREAMS_GROUP_DESCRIBE, "an older broker"),
        StreamsGroupDescribeResponseData(
            groups=[StreamsGroupDescribeResponseDescribedGroup(error_code=ErrorCode.GROUP_ID_NOT_FOUND)]
        ),
    ],
    ids=["of a broker without them", "of none"],
)
def test_a_group_that_is_no_streams_group_either_is_dead(monkeypatch: pytest.MonkeyPatch, streams: Exception) -> None:
    script: dict[ApiKey, Respond] = {
        ApiKey.DESCRIBE_GROUPS: NOT_FOUND,
        ApiKey.STREAMS_GROUP_DESCRIBE: lambda *_: streams,
    }
    found, _ = described(monkeypatch, script)
    assert (found.group_id, found.state, found.error_message) == ("g", "Dead", "Group g not found")


def test_a_streams_group_that_may_not_be_described_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = StreamsGroupDescribeResponseData(
        groups=[StreamsGroupDescribeResponseDescribedGroup(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)]
    )
    with pytest.raises(ClusterUnauthorized, match="group g may not be read: this user needs Describe on Group g"):
        described(monkeypatch, {ApiKey.DESCRIBE_GROUPS: NOT_FOUND, ApiKey.STREAMS_GROUP_DESCRIBE: lambda *_: refused})


@pytest.mark.parametrize("code", [14, 15, 16], ids=lambda code: ErrorCode(code).name)
def test_a_coordinator_that_moves_is_looked_for_again(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    codes = iter([code, code, 0])
    found, connection = described(
        monkeypatch,
        {
            ApiKey.FIND_COORDINATOR: lambda *_: FindCoordinatorResponseData(error_code=next(codes), node_id=1),
            ApiKey.DESCRIBE_GROUPS: describing(),
        },
    )
    assert found.state == "Stable"
    assert [api for api, _ in connection.requests].count(ApiKey.FIND_COORDINATOR) == 3


def test_a_coordinator_is_looked_for_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = ScriptedConnection(
        {ApiKey.FIND_COORDINATOR: lambda *_: FindCoordinatorResponseData(error_code=ErrorCode.NOT_COORDINATOR)},
        seconds_each=1.0,
    )
    monkeypatch.setattr(groups, "ClusterConnection", connection)
    monkeypatch.setattr(groups, "_PAUSE_SECONDS", 0.001)
    with pytest.raises(ClusterRequestFailed, match="group g could not be read: NOT_COORDINATOR"):
        read_group(ConnectionSettings("127.0.0.1:1"), "g")
    assert len(connection.requests) == 10


def test_another_error_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = ScriptedConnection({ApiKey.FIND_COORDINATOR: AT_2, ApiKey.DESCRIBE_GROUPS: describing(30)})
    monkeypatch.setattr(groups, "ClusterConnection", connection)
    with pytest.raises(ClusterUnauthorized, match="needs Describe on Group g"):
        read_group(ConnectionSettings("127.0.0.1:1"), "g")
    assert len(connection.requests) == 2


# -- all groups


def all_groups(
    connection: ScriptedConnection, pattern: str | None = None
) -> tuple[tuple[GroupDescription, ...], tuple[str, ...]]:
    chosen = None if pattern is None else re.compile(pattern)
    found: tuple[tuple[GroupDescription, ...], tuple[str, ...]] = connection.run(describe_all, connection, chosen)
    return found


def ids(found: tuple[GroupDescription, ...]) -> list[str]:
    return [group.group_id for group in found]


def test_groups_are_described_by_their_kind_in_the_order_of_their_ids() -> None:
    assigned = ConsumerGroupDescribeResponseAssignment(
        topic_partitions=[ConsumerGroupDescribeResponseTopicPartitions(topic_name="orders", partitions=[3, 4])]
    )
    modern = ConsumerGroupDescribeResponseDescribedGroup(
        group_id="b",
        group_state="Stable",
        assignor_name="uniform",
        members=[
            ConsumerGroupDescribeResponseMember(
                member_id="m",
                client_id="c",
                client_host="/10.0.0.1",
                rack_id="r1",
                subscribed_topic_names=["orders"],
                assignment=assigned,
            ),
            ConsumerGroupDescribeResponseMember(member_id="n", rack_id=""),
        ],
    )
    shared = ShareGroupDescribeResponseDescribedGroup(
        group_id="a", group_state="Empty", members=[ShareGroupDescribeResponseMember(member_id="s")]
    )
    connection = ScriptedConnection(
        {
            ApiKey.LIST_GROUPS: listing(
                {
                    1: {"d": ("", "consumer"), "b": ("Consumer", "consumer"), "x": ("classic", "connect")},
                    2: {"a": ("share", "share"), "c": ("Streams", "streams"), "y": ("later", "")},
                }
            ),
            ApiKey.DESCRIBE_GROUPS: describing(),
            ApiKey.CONSUMER_GROUP_DESCRIBE: lambda *_: ConsumerGroupDescribeResponseData(groups=[modern]),
            ApiKey.SHARE_GROUP_DESCRIBE: lambda *_: ShareGroupDescribeResponseData(groups=[shared]),
            ApiKey.STREAMS_GROUP_DESCRIBE: lambda *_: StreamsGroupDescribeResponseData(
                groups=[StreamsGroupDescribeResponseDescribedGroup(group_id="c", topology=Topology(subtopologies=None))]
            ),
        }
    )
    found, lines = all_groups(connection)
    assert lines == ()
    assert [(group.group_id, group.kind) for group in found] == [
        ("a", "share"),
        ("b", "consumer"),
        ("c", "streams"),
        ("d", "classic"),
    ]
    share, consumer, streams, _ = found
    assert (share.state, share.protocol_type, share.members[0].topics) == ("Empty", "share", None)
    assert (streams.topology, streams.members) == ({}, ())
    assert (consumer.state, consumer.protocol_type, consumer.protocol) == ("Stable", "consumer", "uniform")
    first, second = consumer.members
    assert (first.client_id, first.host, first.rack, first.topics) == ("c", "10.0.0.1", "r1", frozenset({"orders"}))
    assert first.partitions == (TopicPartition("orders", 3), TopicPartition("orders", 4))
    assert (second.rack, second.topics, second.partitions) == (None, None, ())
    # By the broker that coordinates them.
    assert (ApiKey.DESCRIBE_GROUPS, 1) in connection.requests
    assert (ApiKey.SHARE_GROUP_DESCRIBE, 2) in connection.requests


def test_the_groups_whose_whole_id_matches_are_described() -> None:
    names = ("shop", "shop-2", "my-shop", "mall")
    connection = ScriptedConnection(
        {
            ApiKey.LIST_GROUPS: listing({1: dict.fromkeys(names, ("classic", "consumer"))}),
            ApiKey.DESCRIBE_GROUPS: describing(),
        }
    )
    assert ids(all_groups(connection, "shop|mall")[0]) == ["mall", "shop"]


def test_a_hundred_groups_are_described_by_one_request() -> None:
    sent: list[int] = []

    def respond(request: object, _: int | None) -> DescribeGroupsResponseData:
        group_ids = request.groups  # type: ignore[attr-defined]
        sent.append(len(group_ids))
        return DescribeGroupsResponseData(groups=[classic(group) for group in group_ids])

    names = {f"g{number:03}": ("classic", "consumer") for number in range(201)}
    connection = ScriptedConnection({ApiKey.LIST_GROUPS: listing({1: names}), ApiKey.DESCRIBE_GROUPS: respond})
    assert ids(all_groups(connection)[0]) == list(names)
    assert sent == [100, 100, 1]


def test_groups_that_cannot_be_read_are_named_with_the_reason() -> None:
    codes = {
        "secret": ErrorCode.GROUP_AUTHORIZATION_FAILED,
        "odd": ErrorCode.UNKNOWN_SERVER_ERROR,
        "gone": ErrorCode.GROUP_ID_NOT_FOUND,
    }

    def list_groups(request: object, broker: int | None) -> ListGroupsResponseData:
        if broker == 2:
            return ListGroupsResponseData(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        names = dict.fromkeys((*codes, "fine"), ("classic", "consumer")) | {"late": ("share", "share")}
        response = listing({1: names})(request, broker)
        assert isinstance(response, ListGroupsResponseData)
        return response

    connection = ScriptedConnection(
        {
            ApiKey.LIST_GROUPS: list_groups,
            ApiKey.DESCRIBE_GROUPS: lambda request, _: DescribeGroupsResponseData(
                groups=[classic(group, error_code=codes.get(group, 0)) for group in request.groups]
            ),
            ApiKey.SHARE_GROUP_DESCRIBE: lambda *_: TimeoutError("no response in time"),
        }
    )
    found, lines = all_groups(connection)
    assert ids(found) == ["fine"]
    assert lines == (
        "late: no response in time",
        "odd: UNKNOWN_SERVER_ERROR",
        "secret: this user needs Describe on Group secret",
        "the groups of broker 2: CLUSTER_AUTHORIZATION_FAILED",
    )


def test_groups_that_move_are_read_again_where_they_are_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "_PAUSE_SECONDS", 0.001)
    rounds = iter([1, 1, 2, 2])
    places = {
        1: {1: {"moves": ("classic", "consumer"), "stays": ("classic", "consumer")}},
        2: {2: {"moves": ("classic", "consumer")}},
    }
    connection = ScriptedConnection(
        {
            ApiKey.LIST_GROUPS: lambda request, broker: listing(places[next(rounds)])(request, broker),
            ApiKey.DESCRIBE_GROUPS: lambda request, broker: DescribeGroupsResponseData(
                groups=[
                    classic(group, error_code=ErrorCode.NOT_COORDINATOR if (group, broker) == ("moves", 1) else 0)
                    for group in request.groups
                ]
            ),
        }
    )
    found, lines = all_groups(connection)
    assert (ids(found), lines) == (["moves", "stays"], ())


def test_groups_that_never_stop_moving_are_named_after_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "_PAUSE_SECONDS", 0.001)
    connection = ScriptedConnection(
        {
            ApiKey.LIST_GROUPS: listing({1: {"moves": ("classic", "consumer")}}),
            ApiKey.DESCRIBE_GROUPS: describing(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        },
        seconds_each=1.0,
    )
    assert all_groups(connection) == ((), ("moves: COORDINATOR_LOAD_IN_PROGRESS",))
    # Each round is two lists and a description; metadata is read once.
    assert len(connection.requests) == 1 + 3 * 3
