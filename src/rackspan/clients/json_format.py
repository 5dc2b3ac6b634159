"""The clients of a cluster as a JSON document, from which the page is drawn too."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, TypedDict

from msgspec import Meta

from rackspan.audit.json_format import HeadDocument, head_document
from rackspan.clients.causes import ClientFinding, looks_at_racks
from rackspan.clients.measured import Measured
from rackspan.clients.reads import GroupReads, MemberReads
from rackspan.documents import AtLeastOne, Count
from rackspan.model import ClusterSnapshot
from rackspan.model.group import GroupKind


class MemberDocument(TypedDict):
    member: str
    client_id: str
    host: str | None
    declared_rack: Annotated[str | None, Meta(description="Its client.rack, as it reports it to its group.")]
    located_rack: Annotated[str | None, Meta(description="By its address and --network; null if none has it.")]
    partitions: Count
    with_replica_in_rack: Annotated[Count | None, Meta(description="null: it is not known where the member is.")]
    cross_rack: Annotated[
        Count | None, Meta(description="Partitions read from another rack by Kafka's rules; null if not known of all.")
    ]
    cross_rack_at_best: Annotated[
        Count | None, Meta(description="Those without a replica in its rack, which no setting of the member changes.")
    ]

    measured_bytes: Annotated[
        Count | None, Meta(description="Bytes that it read while --counters measured; null: not verified.")
    ]
    measured_cross_rack_bytes: Annotated[
        Count | None, Meta(description="Those from another rack; null: not verified, or a rack is not known.")
    ]


class GroupDocument(TypedDict):
    group: str
    kind: GroupKind
    state: Annotated[str, Meta(description="Kafka's name of it, such as Stable.")]
    assignor: str | None
    assignor_looks_at_racks: Annotated[
        bool | None, Meta(description="null: it depends on the clients and their version.")
    ]
    cross_rack: Count | None
    cross_rack_at_best: Annotated[
        Count | None, Meta(description="Under the best assignment; null for streams groups and unknown racks.")
    ]
    members: list[MemberDocument]


class ClientFindingDocument(TypedDict):
    cause: Annotated[str, Meta(description="A name of docs/how-to/clients.md.")]
    group: str
    members: list[str]
    topics: list[str]
    partitions: Annotated[AtLeastOne, Meta(description="Reads with this cause: a partition once for each reader.")]
    reason: str
    remedy: Annotated[str, Meta(description="A command if it begins with rackspan; else what to do.")]


class ClientsSummary(HeadDocument):
    groups: Count
    members: Count
    by_cause: Annotated[dict[str, AtLeastOne], Meta(description="Findings by cause.")]
    unread: Annotated[list[str], Meta(description="Groups that could not be read, and why.")]


class ClientsDocument(TypedDict):
    """The members of every group, what they read across racks, and why."""

    summary: ClientsSummary
    groups: list[GroupDocument]
    findings: list[ClientFindingDocument]


def clients_document(
    snapshot: ClusterSnapshot,
    groups: Sequence[GroupReads],
    findings: Sequence[ClientFinding],
    unread: Sequence[str] = (),
    name: str | None = None,
    measured: Sequence[Measured] = (),
) -> ClientsDocument:
    """`unread` has one line for each group or broker's list of groups that could not be read; `measured` an entry a group."""
    return {
        "summary": {
            **head_document(snapshot, name),
            "groups": len(groups),
            "members": sum(len(reads.members) for reads in groups),
            "by_cause": dict(sorted(Counter(finding.cause for finding in findings).items())),
            "unread": list(unread),
        },
        "groups": [_group(reads, found) for reads, found in zip(groups, measured or [{}] * len(groups), strict=True)],
        "findings": [
            {
                "cause": finding.cause,
                "group": finding.group,
                "members": list(finding.members),
                "topics": list(finding.topics),
                "partitions": finding.partitions,
                "reason": finding.reason,
                "remedy": finding.remedy,
            }
            for finding in findings
        ],
    }


def _group(reads: GroupReads, measured: Measured) -> GroupDocument:
    return {
        "group": reads.group.group_id,
        "kind": reads.group.kind,
        "state": reads.group.state,
        "assignor": reads.group.protocol or None,
        "assignor_looks_at_racks": looks_at_racks(reads.group),
        "cross_rack": reads.across,
        "cross_rack_at_best": reads.across_at_best,
        "members": [_member(member, measured) for member in reads.members],
    }


def _member(reads: MemberReads, measured: Measured) -> MemberDocument:
    found = [topic_bytes for (member, _), topic_bytes in measured.items() if member == reads.member.member_id]
    known = bool(found) and not any(topic_bytes.unknown for topic_bytes in found)
    return {
        "member": reads.member.member_id,
        "client_id": reads.member.client_id,
        "host": reads.member.host or None,
        "declared_rack": reads.member.rack,
        "located_rack": reads.located,
        "partitions": len(reads.reads),
        "with_replica_in_rack": reads.in_own_rack,
        "cross_rack": reads.across,
        "cross_rack_at_best": reads.across_at_best,
        "measured_bytes": sum(each.in_rack + each.across + each.unknown for each in found) if found else None,
        "measured_cross_rack_bytes": sum(each.across for each in found) if known else None,
    }
