"""Assignment problems of any size from a seed: uneven racks, replication factor 1 to 3, threads 1, 2 or 4."""

import uuid
from random import Random
from typing import Any

from rackspan.streams.assignors.high_availability import assign_stateful
from rackspan.streams.client_state import LeastLoaded, empty_states, owners
from rackspan.streams.formats import from_document
from rackspan.streams.problem import KAFKA, Problem
from rackspan.streams.rack_awareness import RackAwareness

Document = dict[str, Any]

SUBTOPOLOGIES = 10
OFF = RackAwareness("not optimised yet")


def document(tasks: int, clients: int, seed: int = 1, racks: int = 3, sources: int = 3) -> Document:
    """`tasks` over ten sub-topologies, every other one stateful, each task with 1 to `sources` source partitions.

    Tasks lie where HighAvailability's own balance puts them before racks are considered: what Kafka's optimiser would be given.
    """
    rng = Random(f"{tasks}x{clients}x{racks}x{sources}/{seed}")
    names = [f"rack{index}" for index in range(racks)]
    partitions: dict[str, list[str]] = {}
    group: Document = {
        "config": {"strategy": "min_traffic"},
        "clients": [_client(rng, names, index) for index in range(clients)],
        "tasks": [_task(rng, names, partitions, number, sources) for number in range(tasks)],
        "partitions": partitions,
    }
    group["initial_active"] = _initial(from_document(group))
    return group


def _client(rng: Random, racks: list[str], index: int) -> Document:
    rack = racks[index % len(racks)] if rng.random() < 0.8 else rng.choice(racks)
    process_id = str(uuid.UUID(int=rng.getrandbits(128), version=4))
    return {"process_id": process_id, "rack": rack, "threads": rng.choice([1, 2, 2, 2, 4])}


def _task(rng: Random, racks: list[str], partitions: dict[str, list[str]], number: int, sources: int) -> Document:
    partition, subtopology = divmod(number, SUBTOPOLOGIES)
    stateful = subtopology % 2 == 0
    source = [f"in-{subtopology}-{topic}:{partition}" for topic in range(1 + subtopology % sources)]
    changelog = [f"store-{subtopology}-changelog:{partition}"] if stateful else []
    for name in (*source, *changelog):
        partitions[name] = rng.sample(racks, min(len(racks), rng.choice([1, 2, 2, 3])))
    return {"id": f"{subtopology}_{partition}", "stateful": stateful, "source": source, "changelog": changelog}


def _initial(problem: Problem) -> dict[str, list[str]]:
    states = empty_states(problem)
    assign_stateful(problem, states, OFF, KAFKA)
    clients = LeastLoaded(states, lambda state: state.active_load)
    for task in problem.stateless.tolist():
        state = clients.take()
        state.active.add(task)
        clients.offer(state)
    held: dict[str, list[str]] = {client.process_id: [] for client in problem.clients}
    for task, client in enumerate(owners(states, len(problem.tasks)).tolist()):
        held[problem.clients[client].process_id].append(problem.tasks.ids[task])
    return held
