"""Cases recorded from Kafka Streams 4.1.0's own unit tests, as problems of ours."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rackspan.streams.client_state import ClientState
from rackspan.streams.formats import from_document
from rackspan.streams.problem import Problem

_FILE = Path(__file__).parent.parent / "vectors" / "streams.json"
VECTORS: list[dict[str, Any]] = json.loads(_FILE.read_text())["vectors"]

TAG_CASES: list[dict[str, Any]] = json.loads((_FILE.parent / "streams_tags.json").read_text())["cases"]
"""Groups with tags and racks, and what Kafka Streams' assignors did with them: recorded by tests/compat/streams_tags.py."""

NOWHERE = "nowhere:0"
"""A source for tasks of cases that say nothing of partitions."""


def of_kind(*kinds: str) -> list[dict[str, Any]]:
    return [vector for vector in VECTORS if vector["kind"] in kinds]


def named(vector: dict[str, Any]) -> str:
    return f"{vector['id']}-{vector['test']}"


def tag_case_id(case: dict[str, Any]) -> str:
    config = case["problem"]["config"]
    tags = "-".join(config["rack_aware_assignment_tags"])
    return f"{case['assignor']}-{config['strategy']}-{tags}-{config['num_standbys']}"


def document(vector: dict[str, Any]) -> dict[str, Any]:
    """The problem a vector poses, without what its clients hold."""
    rack = vector.get("rack", {})
    sources, changelogs = rack.get("task_source", {}), rack.get("task_changelog", {})
    stateful = set(vector.get("stateful", changelogs))
    return {
        "config": vector["config"],
        "clients": [
            {
                "process_id": process_id,
                "rack": rack.get("client_racks", {}).get(process_id),
                "threads": client.get("threads", 1),
                "tags": vector.get("effective_tags", {}).get(process_id, client.get("tags", {})),
                "prev_active": client.get("prev_active", []),
                "prev_standby": client.get("prev_standby", []),
                "lags": client.get("lags", {}),
            }
            for process_id, client in vector["in"].items()
        ],
        "tasks": [
            {
                "id": task,
                "stateful": task in stateful,
                "source": sources.get(task) or [NOWHERE],
                "changelog": changelogs.get(task, ["nowhere-changelog:0"] if task in stateful else []),
            }
            for task in _tasks(vector)
        ],
        "partitions": rack.get("partition_racks", {}),
    }


def _tasks(vector: dict[str, Any]) -> list[str]:
    held = [task for client in vector["in"].values() for task in (*client["active"], *client["standby"])]
    return sorted({*vector.get("all_tasks", ()), *vector.get("rack", {}).get("task_source", ()), *held})


def problem(vector: dict[str, Any]) -> Problem:
    return from_document(document(vector))


def states(vector: dict[str, Any], given: Problem) -> list[ClientState]:
    """A work table filled as the vector's clients are."""
    position = {task: index for index, task in enumerate(given.tasks.ids)}
    return [
        ClientState(
            index,
            client,
            {position[task] for task in vector["in"][client.process_id]["active"]},
            {position[task] for task in vector["in"][client.process_id]["standby"]},
        )
        for index, client in enumerate(given.clients)
    ]


def counts(clients: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """Active and standby tasks of each client: the part of Kafka's assignment that does not depend on its choice among equals."""
    return {process_id: (len(held["active"]), len(held["standby"])) for process_id, held in sorted(clients.items())}
