"""Why members of a group read across racks: a finding for each cause, with what removes it.

Each partition that a member reads across racks has one cause, the first of: the member names no rack, one that no broker has,
or not the one it is in; no replica is in its rack; the leader's broker selects no replicas by rack; the replica in its rack is
behind. Members of a share group have one cause only: ShareFetch names no rack, so they read from leaders. Last, and beside
those: another assignment of the same partitions would read fewer of them across racks.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from rackspan.clients.likely_rack import likely_rack
from rackspan.clients.measured import Measured
from rackspan.clients.reads import GroupReads, MemberReads, Read, ReplicaSelectors
from rackspan.consumers.group import PROTOCOL
from rackspan.model import RACK_AWARE_SELECTOR, REPLICA_SELECTOR, ClusterSnapshot, RackId
from rackspan.model.group import GroupDescription, GroupKind
from rackspan.text import count_noun

SHOWN: Final = 3
SELECTOR_REMEDY: Final = f"set {REPLICA_SELECTOR}={RACK_AWARE_SELECTOR} on every broker, and restart them in turn"


@dataclass(frozen=True, slots=True)
class ClientFinding:
    """One cause in one group. `partitions` counts what its members read because of it, a partition once for each reader."""

    cause: str
    group: str
    members: tuple[str, ...]
    topics: tuple[str, ...]
    partitions: int
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class _Crossing:
    """One partition that one member reads across racks, or may."""

    reader: MemberReads
    read: Read


def find_causes(
    reads: GroupReads, snapshot: ClusterSnapshot, measured: Measured = MappingProxyType({})
) -> list[ClientFinding]:
    """The findings of one group; none in a cluster of one rack, where nothing can cross.

    What was measured counts, not the settings: no cause is named for a member and topic whose bytes all came from the member's rack.
    """
    racks = sorted({broker.rack for broker in snapshot.brokers if broker.rack})
    if len(racks) < 2:
        return []
    by_cause: dict[str, list[_Crossing]] = {}
    for reader in reads.members:
        for read in reader.reads:
            cause = _cause(reads, reader, read, racks)
            topic_bytes = measured.get((reader.member.member_id, read.partition.topic))
            if cause is not None and not (topic_bytes is not None and topic_bytes.is_in_rack):
                by_cause.setdefault(cause, []).append(_Crossing(reader, read))
    found = [_WORDS[cause](reads, by_cause[cause], racks) for cause in _WORDS if cause in by_cause]
    return [*found, *_measured_across(reads, by_cause, measured), *assignment_finding(reads)]


def _measured_across(
    reads: GroupReads, by_cause: Mapping[str, list[_Crossing]], measured: Measured
) -> Iterator[ClientFinding]:
    """Bytes from other racks of a topic that the member reads in its own by Kafka's rules."""
    explained = {
        (crossing.reader.member.member_id, crossing.read.partition.topic)
        for crossings in by_cause.values()
        for crossing in crossings
    }
    crossings = [
        _Crossing(reader, read)
        for reader in reads.members
        for read in reader.reads
        if (key := (reader.member.member_id, read.partition.topic)) in measured
        and measured[key].across
        and key not in explained
    ]
    if crossings:
        keys = {(crossing.reader.member.member_id, crossing.read.partition.topic) for crossing in crossings}
        across = sum(measured[key].across for key in keys)
        total = sum(measured[key].across + measured[key].in_rack + measured[key].unknown for key in keys)
        reason = f"{across:,} of {total:,} bytes came from other racks, though by Kafka's rules every replica read is in the reader's"
        yield _finding("measured-across-racks", reads, crossings, reason, _MEASURED_REMEDY)


_MEASURED_REMEDY: Final = (
    "measure again: leaders may have moved meanwhile; if it stays, the client ignores the replica that leaders name "
    "(before Kafka 2.4), or sends another client.rack with fetches than it reports"
)


def _cause(reads: GroupReads, reader: MemberReads, read: Read, racks: Collection[RackId]) -> str | None:
    declared = reader.member.rack
    if reads.group.kind is GroupKind.SHARE:
        return "share-group" if reader.rack is not None and read.leader != reader.rack else None
    if declared is None:
        return "no-client-rack" if reader.member.declares_rack else "rack-not-reported"
    if declared not in racks:
        return "unknown-client-rack"
    if reader.located not in (None, declared):
        return "wrong-client-rack"
    if read.leader == declared:
        return None
    if declared not in read.replicas:
        return "no-replica-in-rack"
    if read.selector is ReplicaSelectors.LEADER:
        return "no-replica-selector"
    if read.selector is ReplicaSelectors.RACK_AWARE and declared not in read.in_sync:
        return "follower-behind"
    return None


def _finding(cause: str, reads: GroupReads, crossings: list[_Crossing], reason: str, remedy: str) -> ClientFinding:
    return ClientFinding(
        cause,
        reads.group.group_id,
        tuple(dict.fromkeys(crossing.reader.member.member_id for crossing in crossings)),
        tuple(sorted({crossing.read.partition.topic for crossing in crossings})),
        len(crossings),
        reason,
        remedy,
    )


def _no_client_rack(reads: GroupReads, crossings: list[_Crossing], _racks: list[RackId]) -> ClientFinding:
    readers = _readers(crossings)
    reason = f"{_members(readers, reads)} without client.rack: each partition is read from its leader, wherever that is"
    return _finding("no-client-rack", reads, crossings, reason, f"set {_settings(readers)} and restart")


def _rack_not_reported(reads: GroupReads, crossings: list[_Crossing], _racks: list[RackId]) -> ClientFinding:
    readers = _readers(crossings)
    reason = f"{_members(readers, reads)} with a client that reports no rack to its group: what it sends with fetches is not known"
    remedy = f"set {_settings(readers)} where it is not, or use a client that reports it (Java's from Kafka 3.4; rackspan's in_rack)"
    return _finding("rack-not-reported", reads, crossings, reason, remedy)


def _unknown_client_rack(reads: GroupReads, crossings: list[_Crossing], racks: list[RackId]) -> ClientFinding:
    readers = _readers(crossings)
    named = sorted({str(reader.member.rack) for reader in readers})
    meant = {name: likely_rack(name, racks) for name in named}
    guesses = [f"{name!r} is probably {rack!r}" for name, rack in meant.items() if rack is not None]
    reason = f"{_members(readers, reads)} with a client.rack that no broker has: {_listed(map(repr, named))}"
    choice = "; ".join(guesses[:SHOWN]) or f"the brokers' racks are {_listed(map(repr, racks))}"
    located = all(reader.located for reader in readers)
    remedy = f"set {_settings(readers)} and restart" if located else f"correct client.rack and restart: {choice}"
    return _finding("unknown-client-rack", reads, crossings, reason, remedy)


def _wrong_client_rack(reads: GroupReads, crossings: list[_Crossing], _racks: list[RackId]) -> ClientFinding:
    readers = _readers(crossings)
    places = _listed(
        f"{reader.member.client_id} names {reader.member.rack!r}, is in {reader.located!r}" for reader in readers
    )
    reason = f"{_members(readers, reads)} with the client.rack of another place: {places}"
    return _finding("wrong-client-rack", reads, crossings, reason, f"set {_settings(readers)} and restart")


def _no_replica_in_rack(reads: GroupReads, crossings: list[_Crossing], racks: list[RackId]) -> ClientFinding:
    without = sorted({str(crossing.reader.member.rack) for crossing in crossings})
    reason = f"{count_noun(len(crossings), 'partition')} read in {_listed(without)} without a replica there; with one in each rack none would be"
    # With a replica in every rack each member has one in its own. Topics with enough replicas only have to be spread.
    few = {crossing.read.partition.topic for crossing in crossings if crossing.read.replication_factor < len(racks)}
    enough = {crossing.read.partition.topic for crossing in crossings} - few
    remedy = " && ".join(
        f"rackspan reassign plan --topic '{_pattern(topics)}'{factor}"
        for topics, factor in ((few, f" --replication-factor {len(racks)}"), (enough, ""))
        if topics
    )
    return _finding("no-replica-in-rack", reads, crossings, reason, remedy)


def _pattern(topics: Iterable[str]) -> str:
    """A regular expression of these names, of whose characters only the full stop has a meaning in one."""
    return "|".join(topic.replace(".", r"\.") for topic in sorted(topics))


def _no_replica_selector(reads: GroupReads, crossings: list[_Crossing], _racks: list[RackId]) -> ClientFinding:
    leaders = len({crossing.read.partition for crossing in crossings})
    reason = f"client.rack is set and has no effect on {count_noun(leaders, 'partition')}: brokers direct every reader to the leader"
    return _finding("no-replica-selector", reads, crossings, reason, SELECTOR_REMEDY)


def _follower_behind(reads: GroupReads, crossings: list[_Crossing], _racks: list[RackId]) -> ClientFinding:
    names = sorted({f"{crossing.read.partition.topic}-{crossing.read.partition.partition}" for crossing in crossings})
    reason = f"the replica in the readers' rack is not in sync: {_listed(names)}"
    return _finding("follower-behind", reads, crossings, reason, "see rackspan audit: a broker may be down or slow")


def _share_group(reads: GroupReads, crossings: list[_Crossing], _racks: list[RackId]) -> ClientFinding:
    reason = f"members of a share group read from leaders only, whatever client.rack says: {count_noun(len(crossings), 'read')} across racks"
    remedy = "lead these topics in the rack where most members are, or run the members in fewer racks"
    return _finding("share-group", reads, crossings, reason, remedy)


_WORDS: Final = {
    "no-client-rack": _no_client_rack,
    "rack-not-reported": _rack_not_reported,
    "unknown-client-rack": _unknown_client_rack,
    "wrong-client-rack": _wrong_client_rack,
    "no-replica-in-rack": _no_replica_in_rack,
    "no-replica-selector": _no_replica_selector,
    "follower-behind": _follower_behind,
    "share-group": _share_group,
}
"""Causes in the order in which they are reported, which is that of what to do first."""


def assignment_finding(reads: GroupReads) -> Iterator[ClientFinding]:
    """Whether the same partitions, assigned otherwise, could be read in more of the readers' own racks."""
    given = [member.across_at_best for member in reads.members]
    best = reads.across_at_best
    if best is None or reads.group.kind is GroupKind.SHARE or None in given:
        return
    now = sum(count for count in given if count is not None)
    if now <= best:
        return
    yield ClientFinding(
        "assignment",
        reads.group.group_id,
        tuple(reader.member.member_id for reader in reads.members),
        tuple(sorted({read.partition.topic for reader in reads.members for read in reader.reads})),
        now - best,
        f"the assignment of {reads.group.protocol or 'the group'} leaves {now} without a replica in their reader's rack; "
        f"as balanced, another leaves {best}",
        _ASSIGNMENT_REMEDY[reads.group.kind],
    )


def looks_at_racks(group: GroupDescription) -> bool | None:
    """Whether the group's assignor considers racks; None for assignors whose rule depends on client and version.

    The brokers' own assignors consider none (KIP-848, KIP-932, KIP-1071). Of the classic ones Java's range and sticky do since
    Kafka 3.5 (KIP-881), other clients' of the same names may not; Kafka Streams' own does as it is configured (KIP-925).
    """
    if group.kind is not GroupKind.CLASSIC:
        return False
    return {"roundrobin": False, PROTOCOL: True}.get(group.protocol)


_ASSIGNMENT_REMEDY: Final = {
    GroupKind.CLASSIC: "use an assignor that looks at racks in every member: rackspan's in_rack in Python, Java's range or sticky",
    GroupKind.CONSUMER: "brokers' own assignors look at no racks (KIP-848): use group.protocol=classic with one that does",
}


def _readers(crossings: list[_Crossing]) -> list[MemberReads]:
    return list({crossing.reader.member.member_id: crossing.reader for crossing in crossings}.values())


def _members(readers: list[MemberReads], reads: GroupReads) -> str:
    return f"{len(readers)} of {count_noun(len(reads.members), 'member')}"


def _settings(readers: list[MemberReads]) -> str:
    """`client.rack=r1` where all are known to be in one rack, else a list by client, else the setting alone."""
    located = {reader.member.client_id: reader.located for reader in readers}
    racks = set(located.values())
    if None in racks:
        return "client.rack to the rack of each member"
    if len(racks) == 1:
        return f"client.rack={racks.pop()}"
    return _listed(f"client.rack={rack} of {client}" for client, rack in sorted(located.items()))


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - SHOWN} more" if len(every) > SHOWN else ""
    return f"{', '.join(every[:SHOWN])}{more}"
