"""Requests and responses: group kinds. Generated from kio's schemas by tools/wire_messages.py: do not edit.

ConsumerGroupDescribe (key 69), versions 0-1; ShareGroupDescribe (key 77), version 1; StreamsGroupDescribe (key 89),
versions 0-1.
"""

from collections.abc import Sequence
from uuid import UUID

from rackspan.wire.messages.base import WireStruct


class ConsumerGroupDescribeRequestData(WireStruct):
    group_ids: Sequence[str] = ()
    include_authorized_operations: bool = False


class ConsumerGroupDescribeResponseTopicPartitions(WireStruct):
    topic_id: UUID | None = None
    topic_name: str = ""
    partitions: Sequence[int] = ()


class ConsumerGroupDescribeResponseAssignment(WireStruct):
    topic_partitions: Sequence[ConsumerGroupDescribeResponseTopicPartitions] = ()


class ConsumerGroupDescribeResponseMember(WireStruct):
    member_id: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: Sequence[str] = ()
    subscribed_topic_regex: str | None = None
    assignment: ConsumerGroupDescribeResponseAssignment | None = None
    target_assignment: ConsumerGroupDescribeResponseAssignment | None = None
    member_type: int = -1


class ConsumerGroupDescribeResponseDescribedGroup(WireStruct):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: Sequence[ConsumerGroupDescribeResponseMember] = ()
    authorized_operations: int = -2147483648


class ConsumerGroupDescribeResponseData(WireStruct):
    throttle_time: int = 0
    groups: Sequence[ConsumerGroupDescribeResponseDescribedGroup] = ()


class ShareGroupDescribeRequestData(WireStruct):
    group_ids: Sequence[str] = ()
    include_authorized_operations: bool = False


class ShareGroupDescribeResponseTopicPartitions(WireStruct):
    topic_id: UUID | None = None
    topic_name: str = ""
    partitions: Sequence[int] = ()


class ShareGroupDescribeResponseAssignment(WireStruct):
    topic_partitions: Sequence[ShareGroupDescribeResponseTopicPartitions] = ()


class ShareGroupDescribeResponseMember(WireStruct):
    member_id: str = ""
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: Sequence[str] = ()
    assignment: ShareGroupDescribeResponseAssignment | None = None


class ShareGroupDescribeResponseDescribedGroup(WireStruct):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: Sequence[ShareGroupDescribeResponseMember] = ()
    authorized_operations: int = -2147483648


class ShareGroupDescribeResponseData(WireStruct):
    throttle_time: int = 0
    groups: Sequence[ShareGroupDescribeResponseDescribedGroup] = ()


class StreamsGroupDescribeRequestData(WireStruct):
    group_ids: Sequence[str] = ()
    include_authorized_operations: bool = False
    include_topology_description: bool = False


class KeyValue(WireStruct):
    key: str = ""
    value: str = ""


class TopicInfo(WireStruct):
    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: Sequence[KeyValue] = ()


class Subtopology(WireStruct):
    subtopology_id: str = ""
    source_topics: Sequence[str] = ()
    repartition_sink_topics: Sequence[str] = ()
    state_changelog_topics: Sequence[TopicInfo] = ()
    repartition_source_topics: Sequence[TopicInfo] = ()


class Topology(WireStruct):
    epoch: int = 0
    subtopologies: Sequence[Subtopology] | None = None


class Endpoint(WireStruct):
    host: str = ""
    port: int = 0


class TaskOffset(WireStruct):
    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0


class TaskIds(WireStruct):
    subtopology_id: str = ""
    partitions: Sequence[int] = ()


class StreamsGroupDescribeResponseAssignment(WireStruct):
    active_tasks: Sequence[TaskIds] = ()
    standby_tasks: Sequence[TaskIds] = ()
    warmup_tasks: Sequence[TaskIds] = ()


class StreamsGroupDescribeResponseMember(WireStruct):
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: Sequence[KeyValue] = ()
    task_offsets: Sequence[TaskOffset] = ()
    task_end_offsets: Sequence[TaskOffset] = ()
    assignment: StreamsGroupDescribeResponseAssignment | None = None
    target_assignment: StreamsGroupDescribeResponseAssignment | None = None
    is_classic: bool = False


class TopologyDescriptionNode(WireStruct):
    name: str = ""
    node_type: int = 0
    source_topics: Sequence[str] = ()
    sink_topic: str | None = None
    stores: Sequence[str] = ()
    successors: Sequence[str] = ()


class TopologyDescriptionSubtopology(WireStruct):
    subtopology_id: str = ""
    nodes: Sequence[TopologyDescriptionNode] = ()


class TopologyDescriptionGlobalStore(WireStruct):
    source: TopologyDescriptionNode | None = None
    processor: TopologyDescriptionNode | None = None


class TopologyDescription(WireStruct):
    subtopologies: Sequence[TopologyDescriptionSubtopology] = ()
    global_stores: Sequence[TopologyDescriptionGlobalStore] = ()


class StreamsGroupDescribeResponseDescribedGroup(WireStruct):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    topology: Topology | None = None
    members: Sequence[StreamsGroupDescribeResponseMember] = ()
    authorized_operations: int = -2147483648
    topology_description: TopologyDescription | None = None
    topology_description_status: int = 0
    assignor_name: str | None = None


class StreamsGroupDescribeResponseData(WireStruct):
    throttle_time: int = 0
    groups: Sequence[StreamsGroupDescribeResponseDescribedGroup] = ()
