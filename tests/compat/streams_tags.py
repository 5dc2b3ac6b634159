"""Cases with client.rack and tags, and what Kafka Streams' own assignors do with them, recorded in tests/vectors.

Each case has one optimum of active tasks, so no tie decides where its standbys go, and every task is comparable.
Record again: python -m tests.compat.streams_tags
"""

import json
from collections.abc import Iterator
from itertools import count, permutations, product
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np

from rackspan.streams import assign, from_document
from rackspan.streams.active.balance_subtopology import subtopology_limits
from rackspan.streams.costs import OwnedTasks, owned_tasks
from rackspan.streams.problem import HIGH_AVAILABILITY_COSTS, STICKY_COSTS, Int32s
from tests.compat.streams_oracle import request, run_requests
from tests.streams.problems import Document, problem

RECORDED: Final = Path(__file__).parent.parent / "vectors" / "streams_tags.json"

ASSIGNORS = ("high-availability", "sticky")
STRATEGIES = ("none", "min_traffic", "balance_subtopology")
TAGS = (("zone",), ("zone", "rack"))


def kafkas_responses() -> list[dict[str, Any]]:
    """Every case with Kafka's assignment, fresh from Kafka's classes."""
    posed = list(_cases())
    responses = run_requests([request(assignor, document) for assignor, document in posed], timeout_seconds=300)
    return [
        {
            "assignor": assignor,
            "problem": document,
            "enabled": response["enabled"],
            "probing_rebalance": response["probing_rebalance"],
            "assignment": {
                process_id: {"active": held.get("active", []), "standby": held.get("standby", [])}
                for process_id, held in response["assignment"].items()
            },
        }
        for (assignor, document), response in zip(posed, responses, strict=True)
    ]


def _cases() -> Iterator[tuple[str, Document]]:
    for assignor, strategy, tags, standbys in product(ASSIGNORS, STRATEGIES, TAGS, (1, 2)):
        documents = (_document(seed, strategy, tags, standbys) for seed in count())
        yield assignor, next(document for document in documents if _shows_something(document, assignor))


def _document(seed: int, strategy: str, tags: tuple[str, ...], standbys: int) -> Document:
    """A small group with state in every task, whose clients are caught up, in racks that are one of their tags or beside them."""
    rng = Random(seed)
    document = problem(rng, strategy, standbys, tags)
    document["config"] |= {"traffic_cost": 10, "non_overlap_cost": 1, "acceptable_recovery_lag": 2**63 - 1}
    del document["initial_active"]
    document["tasks"] = document["tasks"][: rng.randint(4, 6)]
    kept = {task["id"] for task in document["tasks"]}
    for task in document["tasks"]:
        task["stateful"], task["changelog"] = True, [f"changelog-{task['id']}:0"]
        document["partitions"][task["changelog"][0]] = document["partitions"][task["source"][0]]
    for client in document["clients"]:
        client["prev_active"] = [task for task in client["prev_active"] if task in kept]
        client["prev_standby"], client["lags"] = [], {}
        if "rack" in tags:
            client["tags"]["rack"] = client["rack"]
    read = {name for task in document["tasks"] for name in (*task["source"], *task["changelog"])}
    document["partitions"] = {name: racks for name, racks in document["partitions"].items() if name in read}
    return document


def _shows_something(document: Document, assignor: str) -> bool:
    """Whether tags change the assignment (of high-availability), racks change the active tasks, and there is one optimum."""
    if not 4 <= len(document["clients"]) <= 6:
        return False
    untagged = _assigned(document, assignor, rack_aware_assignment_tags=[])
    if (_assigned(document, assignor) == untagged) is (assignor == "high-availability"):
        return False
    if document["config"]["strategy"] == "none":
        return True
    before = _assigned(document, assignor, strategy="none", num_standbys=0)
    given = from_document({**document, "initial_active": {client: held["active"] for client, held in before.items()}})
    assert given.initial_active is not None
    costs = given.configs.costs(STICKY_COSTS if assignor == "sticky" else HIGH_AVAILABILITY_COSTS)
    tasks = owned_tasks(given, given.stateful, given.initial_active, costs)
    return _has_one_optimum(tasks, balanced=document["config"]["strategy"] == "balance_subtopology")


def _assigned(document: Document, assignor: str, **configs: object) -> Document:
    assignment: Document = assign({**document, "config": {**document["config"], **configs}}, assignor)["assignment"]
    return assignment


def _has_one_optimum(tasks: OwnedTasks, balanced: bool) -> bool:
    """By trying every assignment within the quotas: one is cheapest, and it is not the one before."""
    possible = [np.array(owner, dtype=np.int32) for owner in sorted(set(permutations(tasks.owner.tolist())))]
    costs = sorted(
        (tasks.cost(owner), owner.tolist()) for owner in possible if not balanced or _in_limits(tasks, owner)
    )
    return len(costs) > 1 and costs[0][0] < costs[1][0] and costs[0][1] != tasks.owner.tolist()


def _in_limits(tasks: OwnedTasks, owner: Int32s) -> bool:
    codes, family = np.unique(tasks.subtopology, return_inverse=True)
    limits = subtopology_limits(tasks.held, len(tasks), np.bincount(family, minlength=len(codes)))
    held = np.zeros_like(limits)
    np.add.at(held, (family, owner), 1)
    return bool((held <= limits).all())


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(case) for case in kafkas_responses())
    RECORDED.write_text(f'{{"kafka": "4.1.0", "cases": [\n{lines}\n]}}\n')
