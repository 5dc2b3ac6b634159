"""Functions that several request handlers share, grouped by what they serve: topics, admin requests, groups, transactions.

A function used by one handler stays in that handler's file.
"""

from rackspan.cluster.handlers.common.acl_requests import NO_AUTHORIZER
from rackspan.cluster.handlers.common.admin_responses import ADMIN_TIMEOUT_MS, timeout_responses
from rackspan.cluster.handlers.common.authorized_operations import (
    CLUSTER_OPERATIONS,
    GROUP_OPERATIONS,
    NOT_REQUESTED,
    TOPIC_OPERATIONS,
)
from rackspan.cluster.handlers.common.config_changes import alter_resources
from rackspan.cluster.handlers.common.group_requests import committed_offsets, group_response, partition_exists
from rackspan.cluster.handlers.common.record_reader import (
    RecordPosition,
    first_record_at,
    keyless_records,
    latest_record,
    record_body,
)
from rackspan.cluster.handlers.common.topic_creation import create_missing_topics, internal_partition, partition_count
from rackspan.cluster.handlers.common.topics import (
    LEADER_CHANGED,
    READ_COMMITTED,
    by_topic,
    led_partition,
    offline_replicas,
    partition_of,
    topic_name,
)
from rackspan.cluster.handlers.common.transaction_requests import transaction_error_code, transaction_response

__all__ = [
    "ADMIN_TIMEOUT_MS",
    "CLUSTER_OPERATIONS",
    "GROUP_OPERATIONS",
    "LEADER_CHANGED",
    "NOT_REQUESTED",
    "NO_AUTHORIZER",
    "READ_COMMITTED",
    "TOPIC_OPERATIONS",
    "RecordPosition",
    "alter_resources",
    "by_topic",
    "committed_offsets",
    "create_missing_topics",
    "first_record_at",
    "group_response",
    "internal_partition",
    "keyless_records",
    "latest_record",
    "led_partition",
    "offline_replicas",
    "partition_count",
    "partition_exists",
    "partition_of",
    "record_body",
    "timeout_responses",
    "topic_name",
    "transaction_error_code",
    "transaction_response",
]
