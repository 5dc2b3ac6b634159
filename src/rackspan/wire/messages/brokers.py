"""Requests and responses: brokers. Generated from kio's schemas by tools/wire_messages.py: do not edit.

DescribeLogDirs (key 35), versions 1-5; DescribeCluster (key 60), versions 0-2; UnregisterBroker (key 64), version 0.
"""

from collections.abc import Sequence

from rackspan.wire.messages.base import WireStruct


class DescribableLogDirTopic(WireStruct):
    topic: str = ""
    partitions: Sequence[int] = ()


class DescribeLogDirsRequestData(WireStruct):
    topics: Sequence[DescribableLogDirTopic] | None = None


class DescribeLogDirsPartition(WireStruct):
    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False


class DescribeLogDirsTopic(WireStruct):
    name: str = ""
    partitions: Sequence[DescribeLogDirsPartition] = ()


class DescribeLogDirsResult(WireStruct):
    error_code: int = 0
    log_dir: str = ""
    topics: Sequence[DescribeLogDirsTopic] = ()
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False


class DescribeLogDirsResponseData(WireStruct):
    throttle_time: int = 0
    error_code: int = 0
    results: Sequence[DescribeLogDirsResult] = ()


class DescribeClusterRequestData(WireStruct):
    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1
    include_fenced_brokers: bool = False


class DescribeClusterBroker(WireStruct):
    broker_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    is_fenced: bool = False


class DescribeClusterResponseData(WireStruct):
    throttle_time: int = 0
    error_code: int = 0
    error_message: str | None = None
    endpoint_type: int = 1
    cluster_id: str = ""
    controller_id: int = -1
    brokers: Sequence[DescribeClusterBroker] = ()
    cluster_authorized_operations: int = -2147483648


class UnregisterBrokerRequestData(WireStruct):
    broker_id: int = 0


class UnregisterBrokerResponseData(WireStruct):
    throttle_time: int = 0
    error_code: int = 0
    error_message: str | None = None
