"""Kafka's APIs that this project reads and writes, by key, and in which versions: those of Kafka 4.4.

OffsetCommit 10, OffsetFetch 10 and TxnOffsetCommit 6, which name topics by id, are not among them.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

TESTED_UP_TO: Final = "4.4"
"""The newest release of Kafka whose APIs and levels are here."""

METADATA_VERSION: Final = "metadata.version"
METADATA_LEVELS: Final = range(1, 34)
"""The levels of metadata.version of Kafka 3.0 to 4.4 (4.4-IV2)."""


class ApiKey(IntEnum):
    """The number that a request begins with."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    DESCRIBE_LOG_DIRS = 35
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_QUORUM = 55
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_DESCRIBE = 69
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_DESCRIBE = 77
    STREAMS_GROUP_DESCRIBE = 89


VERSIONS: Final[Mapping[ApiKey, range]] = {
    ApiKey.PRODUCE: range(3, 14),
    ApiKey.FETCH: range(4, 19),
    ApiKey.LIST_OFFSETS: range(1, 12),
    ApiKey.METADATA: range(14),
    ApiKey.OFFSET_COMMIT: range(2, 10),
    ApiKey.OFFSET_FETCH: range(1, 10),
    ApiKey.FIND_COORDINATOR: range(7),
    ApiKey.JOIN_GROUP: range(10),
    ApiKey.HEARTBEAT: range(5),
    ApiKey.LEAVE_GROUP: range(6),
    ApiKey.SYNC_GROUP: range(6),
    ApiKey.DESCRIBE_GROUPS: range(7),
    ApiKey.LIST_GROUPS: range(6),
    ApiKey.API_VERSIONS: range(6),
    ApiKey.CREATE_TOPICS: range(2, 8),
    ApiKey.DELETE_TOPICS: range(1, 7),
    ApiKey.DELETE_RECORDS: range(3),
    ApiKey.INIT_PRODUCER_ID: range(6),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: range(2, 5),
    ApiKey.ADD_PARTITIONS_TO_TXN: range(6),
    ApiKey.ADD_OFFSETS_TO_TXN: range(5),
    ApiKey.END_TXN: range(6),
    ApiKey.WRITE_TXN_MARKERS: range(1, 3),
    ApiKey.TXN_OFFSET_COMMIT: range(6),
    ApiKey.DESCRIBE_ACLS: range(1, 4),
    ApiKey.CREATE_ACLS: range(1, 4),
    ApiKey.DELETE_ACLS: range(1, 4),
    ApiKey.DESCRIBE_CONFIGS: range(1, 5),
    ApiKey.ALTER_CONFIGS: range(3),
    ApiKey.DESCRIBE_LOG_DIRS: range(1, 6),
    ApiKey.CREATE_PARTITIONS: range(4),
    ApiKey.DELETE_GROUPS: range(4),
    ApiKey.ELECT_LEADERS: range(3),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: range(2),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: range(2),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: range(1),
    ApiKey.OFFSET_DELETE: range(1),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: range(2),
    ApiKey.ALTER_CLIENT_QUOTAS: range(2),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: range(1),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: range(1),
    ApiKey.DESCRIBE_QUORUM: range(3),
    ApiKey.DESCRIBE_CLUSTER: range(3),
    ApiKey.DESCRIBE_PRODUCERS: range(1),
    ApiKey.UNREGISTER_BROKER: range(1),
    ApiKey.DESCRIBE_TRANSACTIONS: range(1),
    ApiKey.LIST_TRANSACTIONS: range(3),
    ApiKey.CONSUMER_GROUP_DESCRIBE: range(2),
    ApiKey.LIST_CONFIG_RESOURCES: range(2),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: range(1),
    ApiKey.SHARE_GROUP_DESCRIBE: range(1, 2),
    ApiKey.STREAMS_GROUP_DESCRIBE: range(2),
}

SERVED: Final[Mapping[ApiKey, range]] = {
    key: versions
    for key, versions in VERSIONS.items()
    if key not in (ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.SHARE_GROUP_DESCRIBE, ApiKey.STREAMS_GROUP_DESCRIBE)
}
"""Those that the embedded cluster serves. The others are requested only: its groups are classic."""

_SUBJECTS: Final[Mapping[str, tuple[ApiKey, ...]]] = {
    "acls": (ApiKey.CREATE_ACLS, ApiKey.DESCRIBE_ACLS, ApiKey.DELETE_ACLS),
    "brokers": (ApiKey.DESCRIBE_CLUSTER, ApiKey.UNREGISTER_BROKER, ApiKey.DESCRIBE_LOG_DIRS),
    "configs": (
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.LIST_CONFIG_RESOURCES,
    ),
    "group_members": (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP),
    "group_offsets": (ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_DELETE),
    "groups": (ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_GROUPS, ApiKey.LIST_GROUPS, ApiKey.DELETE_GROUPS),
    "group_kinds": (ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.SHARE_GROUP_DESCRIBE, ApiKey.STREAMS_GROUP_DESCRIBE),
    "log_offsets": (ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.DELETE_RECORDS),
    "quotas": (ApiKey.DESCRIBE_CLIENT_QUOTAS, ApiKey.ALTER_CLIENT_QUOTAS),
    "reassignments": (
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.ELECT_LEADERS,
    ),
    "scram_credentials": (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS),
    "topics": (
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ),
    "transaction_states": (ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.LIST_TRANSACTIONS, ApiKey.DESCRIBE_PRODUCERS),
    "transactions": (
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.END_TXN,
        ApiKey.WRITE_TXN_MARKERS,
    ),
}
_MODULES: Final = {api: module for module, apis in _SUBJECTS.items() for api in apis}


def message_module(api: ApiKey) -> str:
    """The module of messages/ that has the classes of an API: one of a subject, or of its own."""
    return _MODULES.get(api, api.name.lower())
