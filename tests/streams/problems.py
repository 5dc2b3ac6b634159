"""Random assignment problems from a seed, in the document format."""

import uuid
from random import Random
from typing import Any

Document = dict[str, Any]


def problem(dice: Random, strategy: str = "min_traffic", standbys: int = 0, tags: tuple[str, ...] = ()) -> Document:
    """A group of 2-12 clients in 2-4 racks and 3-50 tasks, with a previous generation and a random present assignment."""
    racks = [f"rack{index}" for index in range(dice.randint(2, 4))]
    clients = [_client(dice, racks, tags) for _ in range(dice.randint(2, 12))]
    partitions: dict[str, list[str]] = {}
    tasks = [
        _task(dice, racks, partitions, f"{subtopology}_{partition}", stateful)
        for subtopology in range(dice.randint(1, 5))
        for stateful in [dice.random() < 0.6]
        for partition in range(dice.randint(2, 10))
    ]
    _previous(dice, clients, tasks)
    active: dict[str, list[str]] = {client["process_id"]: [] for client in clients}
    for task in tasks:
        active[dice.choice(clients)["process_id"]].append(task["id"])
    return {
        "config": {
            "strategy": strategy,
            "traffic_cost": dice.choice([None, 0, 1, 3, 10]),
            "non_overlap_cost": dice.choice([None, 0, 1, 4, 10]),
            "num_standbys": standbys,
            "max_warmup_replicas": dice.randint(1, 4),
            "acceptable_recovery_lag": dice.choice([0, 100, 10_000]),
            "rack_aware_assignment_tags": list(tags),
        },
        "clients": clients,
        "tasks": tasks,
        "partitions": partitions,
        "initial_active": active,
    }


def with_standbys(dice: Random, document: Document) -> Document:
    """One or two standbys of each stateful task on random clients that do not run it."""
    held: dict[str, list[str]] = {client["process_id"]: [] for client in document["clients"]}
    for task in (task["id"] for task in document["tasks"] if task["stateful"]):
        free = [process_id for process_id in held if task not in document["initial_active"][process_id]]
        for process_id in dice.sample(free, min(len(free), dice.randint(1, 2))):
            held[process_id].append(task)
    return {**document, "initial_standby": held, "config": {**document["config"], "num_standbys": 1}}


def _client(dice: Random, racks: list[str], tags: tuple[str, ...]) -> Document:
    return {
        "process_id": str(uuid.UUID(int=dice.getrandbits(128), version=4)),
        "rack": dice.choice(racks),
        "threads": dice.choice([1, 2, 2, 4]),
        "tags": {key: f"{key}{dice.randint(0, 2)}" for key in tags},
        "prev_active": [],
        "prev_standby": [],
        "lags": {},
    }


def _task(dice: Random, racks: list[str], partitions: dict[str, list[str]], task: str, stateful: bool) -> Document:
    sources = [f"in-{task.split('_')[0]}-{topic}:{task.split('_')[1]}" for topic in range(dice.randint(1, 3))]
    changelogs = [f"store-{task.split('_')[0]}-changelog:{task.split('_')[1]}"] if stateful else []
    for name in (*sources, *changelogs):
        partitions[name] = dice.sample(racks, dice.randint(1, min(3, len(racks))))
    return {"id": task, "stateful": stateful, "source": sources, "changelog": changelogs}


def _previous(dice: Random, clients: list[Document], tasks: list[Document]) -> None:
    for task in tasks:
        if dice.random() < 0.8:
            first, second = dice.sample(clients, 2)
            first["prev_active"].append(task["id"])
            if task["stateful"] and dice.random() < 0.5:
                second["prev_standby"].append(task["id"])
                second["lags"][task["id"]] = dice.choice([0, 50, 5_000, 50_000, -3])
