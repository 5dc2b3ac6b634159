"""User data as Kafka Streams' own classes wrote it, every version, with the facts that went in."""

import json
from pathlib import Path
from typing import Any

from rackspan.streams.user_data.assignment_info import AssignmentInfo
from rackspan.streams.user_data.subscription_info import SubscriptionInfo

_FILE = Path(__file__).parent.parent / "vectors" / "streams_user_data.json"
USER_DATA: list[dict[str, Any]] = json.loads(_FILE.read_text())["user_data"]


def said_by(one: SubscriptionInfo) -> dict[str, Any]:
    return {
        "process_id": one.process_id,
        "end_point": one.end_point,
        "offset_sums": dict(one.offset_sums),
        "tags": dict(one.tags),
        "error_code": one.error_code,
    }


def told_by(one: AssignmentInfo) -> dict[str, Any]:
    return {
        "active": list(one.active),
        "standby": {
            task: sorted(f"{topic}:{partition}" for topic, partition in sources)
            for task, sources in one.standby.items()
        },
        "error_code": one.error_code,
        "next_rebalance_ms": one.next_rebalance_ms,
    }


def facts(recorded: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in recorded.items() if key != "bytes"}
