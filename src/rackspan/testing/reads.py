"""Reads in the consumer's own rack (KIP-392): the broker config that they need, and an assertion that they happen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from rackspan.errors import UsageError
from rackspan.model.broker import RACK_AWARE_SELECTOR, REPLICA_SELECTOR

if TYPE_CHECKING:
    from rackspan.cluster.context import Flow
    from rackspan.practice.faults import PracticeCluster

READS_IN_RACK: Final = {REPLICA_SELECTOR: RACK_AWARE_SELECTOR}
"""The `config` of a cluster whose leaders direct consumers to the replica in their rack. By default leaders serve everybody."""

_DIRECTED: Final = "client.rack, config=READS_IN_RACK and a replica in its rack are needed"


def assert_reads_in_rack(cluster: PracticeCluster, group: str, *, since: Mapping[Flow, int] | None = None) -> None:
    """Every record that the group reads comes from the rack of its reader. Errors: AssertionError, a line for each that does not.

    An embedded cluster counts: all bytes that clients of the group fetched, or those after `since`, an earlier `traffic()`.
    Real Kafka does not: there the members that the group has now are judged by the replica that brokers direct them to, as
    `rackspan clients` does. Errors: UsageError for a client id that several groups have, and for `since` on real Kafka.
    """
    __tracebackhide__ = True
    from rackspan.cluster import EmbeddedCluster

    if isinstance(cluster, EmbeddedCluster):
        before = {} if since is None else since
        fetched = {flow: size - before.get(flow, 0) for flow, size in cluster.fetched_by(group).items()}
        fetched = {flow: size for flow, size in fetched.items() if size}
        lines = list(_crossings(fetched))
        if not fetched:
            lines = ["none of its consumers has fetched a record"]
    elif since is not None:
        raise UsageError("since: only the embedded cluster counts bytes; leave it out on Apache Kafka")
    else:
        lines = list(_directed_elsewhere(cluster.bootstrap_servers, group))
    if lines:
        raise AssertionError("\n  ".join([f"group {group} does not read in its racks:", *lines, _DIRECTED]))


def _crossings(fetched: Mapping[Flow, int]) -> Iterator[str]:
    for flow, size_bytes in fetched.items():
        if flow.to_rack is None or flow.crosses_racks:
            reader = "without client.rack" if flow.to_rack is None else f"in {flow.to_rack}"
            server = "a follower" if flow.from_follower else "the leader"
            yield f"client {flow.client} {reader} read {size_bytes} bytes of {flow.topic} from {server} in {flow.from_rack}"


def _directed_elsewhere(bootstrap_servers: str, group: str) -> Iterator[str]:
    """By the members of the group now, and the replica that brokers direct each to."""
    from rackspan import api
    from rackspan.sources.source import Cluster

    found = api.read_clients(Cluster(bootstrap_servers), re.compile(re.escape(group)))
    snapshot = api.live_cluster(bootstrap_servers, None, 30, sizes=False).read().snapshot
    groups, _, _ = api.clients(snapshot, found)
    if not any(member.reads for reads in groups for member in reads.members):
        yield "it has no member now that reads a partition"
    for member in (member for reads in groups for member in reads.members):
        for read in member.reads:
            if member.rack is None or read.served_from != member.rack:
                reader = "without client.rack" if member.rack is None else f"in {member.rack}"
                yield f"client {member.member.client_id} {reader} reads {read.partition} from {read.served_from}"
