"""User data as Kafka Streams' own classes wrote it, every version, with the values that were encoded."""

import json
from pathlib import Path
from typing import Any

from rackspan.streams.user_data import AssignmentInfo, SubscriptionInfo

_FILE = Path(__file__).parent.parent / "vectors" / "streams_user_data.json"
USER_DATA: list[dict[str, Any]] = json.loads(_FILE.read_text())["user_data"]


def subscription_values(info: SubscriptionInfo) -> dict[str, Any]:
    return {
        "process_id": info.process_id,
        "end_point": info.end_point,
        "offset_sums": dict(info.offset_sums),
        "tags": dict(info.tags),
        "error_code": info.error_code,
    }


def assignment_values(info: AssignmentInfo) -> dict[str, Any]:
    return {
        "active": list(info.active),
        "standby": {
            task: sorted(f"{topic}:{partition}" for topic, partition in sources)
            for task, sources in info.standby.items()
        },
        "error_code": info.error_code,
        "next_rebalance_ms": info.next_rebalance_ms,
    }


def recorded_values(recorded: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in recorded.items() if key != "bytes"}
