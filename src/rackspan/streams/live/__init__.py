"""Running Kafka Streams groups: read from their members' bytes, captured as a problem, and audited.

Begin with streams_group.py (members and tasks), then capture.py (the group as a problem document) and
group_audit.py (what it reads across racks, now and under each strategy). Talks to no cluster: `sources` requests the bytes.
"""

from rackspan.streams.live.capture import CapturedGroup, capture_group
from rackspan.streams.live.group_audit import audit_group, could_read_less
from rackspan.streams.live.streams_group import StreamsGroup, streams_group

__all__ = [
    "CapturedGroup",
    "StreamsGroup",
    "audit_group",
    "capture_group",
    "could_read_less",
    "streams_group",
]
