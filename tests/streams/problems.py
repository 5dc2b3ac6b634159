"""Random assignment problems from a seed, in the document format."""

import uuid
from random import Random
from typing import Any

Document = dict[str, Any]


def problem(rng: Random, strategy: str = "min_traffic", standbys: int = 0, tags: tuple[str, ...] = ()) -> Document:
    """A group of 2-12 clients in 2-4 racks and 3-50 tasks, with a previous generation and a random present assignment."""
    racks = [f"rack{index}" for index in range(rng.randint(2, 4))]
    clients = [_client(rng, racks, tags) for _ in range(rng.randint(2, 12))]
    partitions: dict[str, list[str]] = {}
    tasks = [
        _task(rng, racks, partitions, f"{subtopology}_{partition}", stateful)
        for subtopology in range(rng.randint(1, 5))
        for stateful in [rng.random() < 0.6]
        for partition in range(rng.randint(2, 10))
    ]
    _previous(rng, clients, tasks)
    active: dict[str, list[str]] = {client["process_id"]: [] for client in clients}
    for task in tasks:
        active[rng.choice(clients)["process_id"]].append(task["id"])
    return {
        "config": {
            "strategy": strategy,
            "traffic_cost": rng.choice([None, 0, 1, 3, 10]),
            "non_overlap_cost": rng.choice([None, 0, 1, 4, 10]),
            "num_standbys": standbys,
            "max_warmup_replicas": rng.randint(1, 4),
            "acceptable_recovery_lag": rng.choice([0, 100, 10_000]),
            "rack_aware_assignment_tags": list(tags),
        },
        "clients": clients,
        "tasks": tasks,
        "partitions": partitions,
        "initial_active": active,
    }


def with_standbys(rng: Random, document: Document) -> Document:
    """One or two standbys of each stateful task on random clients that do not run it."""
    held: dict[str, list[str]] = {client["process_id"]: [] for client in document["clients"]}
    for task in (task["id"] for task in document["tasks"] if task["stateful"]):
        free = [process_id for process_id in held if task not in document["initial_active"][process_id]]
        for process_id in rng.sample(free, min(len(free), rng.randint(1, 2))):
            held[process_id].append(task)
    return {**document, "initial_standby": held, "config": {**document["config"], "num_standbys": 1}}


def _client(rng: Random, racks: list[str], tags: tuple[str, ...]) -> Document:
    return {
        "process_id": str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        "rack": rng.choice(racks),
        "threads": rng.choice([1, 2, 2, 4]),
        "tags": {key: f"{key}{rng.randint(0, 2)}" for key in tags},
        "prev_active": [],
        "prev_standby": [],
        "lags": {},
    }


def _task(rng: Random, racks: list[str], partitions: dict[str, list[str]], task: str, stateful: bool) -> Document:
    sources = [f"in-{task.split('_')[0]}-{topic}:{task.split('_')[1]}" for topic in range(rng.randint(1, 3))]
    changelogs = [f"store-{task.split('_')[0]}-changelog:{task.split('_')[1]}"] if stateful else []
    for name in (*sources, *changelogs):
        partitions[name] = rng.sample(racks, rng.randint(1, min(3, len(racks))))
    return {"id": task, "stateful": stateful, "source": sources, "changelog": changelogs}


def _previous(rng: Random, clients: list[Document], tasks: list[Document]) -> None:
    for task in tasks:
        if rng.random() < 0.8:
            first, second = rng.sample(clients, 2)
            first["prev_active"].append(task["id"])
            if task["stateful"] and rng.random() < 0.5:
                second["prev_standby"].append(task["id"])
                second["lags"][task["id"]] = rng.choice([0, 50, 5_000, 50_000, -3])
