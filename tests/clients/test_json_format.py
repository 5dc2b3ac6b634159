"""The document of clients, written whole, and whether an assignor looks at racks."""

import pytest

from rackspan.clients import ReplicaSelectors, find_causes, group_reads
from rackspan.clients.causes import looks_at_racks
from rackspan.clients.json_format import clients_document
from rackspan.clients.measured import TopicBytes
from rackspan.model.client_networks import ClientNetworks
from rackspan.model.group import GroupKind
from tests.clients.worlds import World


def world(kind: GroupKind = GroupKind.CONSUMER) -> World:
    """Two racks without follower fetching; `a` reads one of its two partitions from the other rack, of `b` no rack is known."""
    return World(
        {1: "r1", 2: "r2"},
        {("orders", 0): (1, [1, 2], [1, 2]), ("orders", 1): (2, [2], [2]), ("clicks", 0): (1, [1], [1])},
        dict.fromkeys((1, 2), ReplicaSelectors.LEADER),
        kind,
        declared={"a": "r1", "b": None},
        reads={"a": [("orders", 0), ("orders", 1)], "b": [("clicks", 0)]},
        hosts={"a": "10.0.1.1"},
    )


def test_the_document_has_every_member_and_what_is_not_known_as_null() -> None:
    snapshot = world().snapshot()
    reads = group_reads(world().group(), snapshot, world().selectors, ClientNetworks({"10.0.1.0/24": "r1"}))
    measured = {
        ("a", "orders"): TopicBytes(in_rack=10, across=3, unknown=0),
        ("a", "clicks"): TopicBytes(in_rack=1, across=0, unknown=0),
        ("b", "clicks"): TopicBytes(in_rack=0, across=0, unknown=7),
    }
    document = clients_document(
        snapshot, [reads], find_causes(reads, snapshot), ["group g2: no right"], None, [measured]
    )
    assert document == {
        "summary": {
            "cluster_id": None,
            "cluster_name": None,
            "taken_at": None,
            "brokers": 2,
            "topics": 2,
            "partitions": 3,
            "partial": [],
            "complete": True,
            "groups": 1,
            "members": 2,
            "by_cause": {"no-client-rack": 1, "no-replica-in-rack": 1},
            "unread": ["group g2: no right"],
        },
        "groups": [
            {
                "group": "shop",
                "kind": "consumer",
                "state": "Stable",
                "assignor": "range",
                "assignor_looks_at_racks": False,
                "cross_rack": None,
                "cross_rack_at_best": None,
                "members": [
                    {
                        "member": "a",
                        "client_id": "client-a",
                        "host": "10.0.1.1",
                        "declared_rack": "r1",
                        "located_rack": "r1",
                        "partitions": 2,
                        "with_replica_in_rack": 1,
                        "cross_rack": 1,
                        "cross_rack_at_best": 1,
                        "measured_bytes": 14,
                        "measured_cross_rack_bytes": 3,
                    },
                    {
                        "member": "b",
                        "client_id": "client-b",
                        "host": None,
                        "declared_rack": None,
                        "located_rack": None,
                        "partitions": 1,
                        "with_replica_in_rack": None,
                        "cross_rack": None,
                        "cross_rack_at_best": None,
                        "measured_bytes": 7,
                        "measured_cross_rack_bytes": None,
                    },
                ],
            }
        ],
        "findings": [
            {
                "cause": "no-client-rack",
                "group": "shop",
                "members": ["b"],
                "topics": ["clicks"],
                "partitions": 1,
                "reason": "1 of 2 members without client.rack: each partition is read from its leader, wherever that is",
                "remedy": "set client.rack to the rack of each member and restart",
            },
            {
                "cause": "no-replica-in-rack",
                "group": "shop",
                "members": ["a"],
                "topics": ["orders"],
                "partitions": 1,
                "reason": "1 partition read in r1 without a replica there; with one in each rack none would be",
                "remedy": "rackspan reassign plan --topic 'orders' --replication-factor 2",
            },
        ],
    }


def test_bytes_that_were_not_measured_are_null() -> None:
    snapshot = world().snapshot()
    reads = group_reads(world().group(), snapshot, world().selectors)
    for member in clients_document(snapshot, [reads], [])["groups"][0]["members"]:
        assert (member["measured_bytes"], member["measured_cross_rack_bytes"]) == (None, None)


@pytest.mark.parametrize(
    ("kind", "protocol", "racks"),
    [
        (GroupKind.CONSUMER, "range", False),
        (GroupKind.SHARE, "simple", False),
        (GroupKind.CLASSIC, "roundrobin", False),
        (GroupKind.CLASSIC, "range", None),
        (GroupKind.CLASSIC, "rackspan-rack-aware", True),
    ],
)
def test_an_assignor_looks_at_racks_or_it_depends_on_the_client(
    kind: GroupKind, protocol: str, racks: bool | None
) -> None:
    given = world(kind)
    given.protocol = protocol
    assert looks_at_racks(given.group()) is racks
