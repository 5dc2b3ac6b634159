"""Wrong problems, each refused in one exact line; odd ones, read with a warning."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from rackspan.errors import InvalidProblem, RackspanError
from rackspan.streams import AssignmentConfigs, from_document
from rackspan.streams.formats import KAFKA_KEYS, read_configs
from rackspan.streams.problem import Strategy

A, B = "00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000b"

GOOD: dict[str, Any] = {
    "config": {"strategy": "min_traffic", "num_standbys": 1},
    "clients": [{"process_id": A, "rack": "r1", "threads": 1}, {"process_id": B, "rack": "r2", "threads": 2}],
    "tasks": [
        {"id": "0_0", "stateful": True, "source": ["in:0"], "changelog": ["log:0"]},
        {"id": "0_1", "stateful": True, "source": ["in:1"], "changelog": ["log:1"]},
        {"id": "1_0", "stateful": False, "source": ["mid:0"], "changelog": []},
    ],
    "partitions": {"in:0": ["r1"], "in:1": ["r2"], "mid:0": ["r1", "r2"], "log:0": ["r1"], "log:1": ["r2"]},
    "initial_active": {A: ["0_0", "1_0"], B: ["0_1"]},
    "initial_standby": {A: ["0_1"], B: ["0_0"]},
}

Change = Callable[[dict[str, Any]], object]


def put(*path: Any) -> Change:
    """Set the value at the end of a path."""
    *way, last, value = path

    def change(document: dict[str, Any]) -> None:
        place: Any = document
        for step in way:
            place = place[step]
        place[last] = value

    return change


def drop(key: str) -> Change:
    return lambda document: document.pop(key)


WRONG: list[tuple[Change, str]] = [
    (drop("tasks"), "problem: tasks is missing; add it and run again"),
    (drop("clients"), "problem: clients is missing; add it and run again"),
    (drop("partitions"), "problem: partitions is missing; add it and run again"),
    (put("clients", []), "clients: there are none; a group has at least one"),
    (put("clients", 1, "process_id", A), f"client {A}: listed twice; leave one of them out"),
    (
        put("clients", 0, "process_id", "host-1"),
        "client 'host-1': a process id is a UUID such as 00000000-0000-0000-0000-000000000001; fix it in the file",
    ),
    (put("clients", 0, "threads", 0), f"client {A}: threads is 0, outside 1 to 2147483647; fix it in the file"),
    (put("clients", 0, "threads", "2"), f'client {A}: threads is "2", not a whole number; fix it in the file'),
    (put("clients", 0, "rack", 7), f"client {A}: rack is 7, not a string; fix it in the file"),
    (put("clients", 0, "consumers", {"c": "r1"}), f"client {A}: has both rack and consumers; leave one of them out"),
    (
        put("clients", 0, "lags", {"9_9": 5}),
        f"client {A}: lags: task 9_9 is not among the tasks; add it or leave it out",
    ),
    (
        put("clients", 0, "lags", {"0_0": -1}),
        f"client {A}: lags: task 0_0: is -1; a lag is 0 or more records, -2 where the task ran active, -3 where it is unknown",
    ),
    (
        put("clients", 0, "lags", {"0_0": -4}),
        f"client {A}: lags: task 0_0: is -4; a lag is 0 or more records, -2 where the task ran active, -3 where it is unknown",
    ),
    (
        put("clients", 0, "tags", {"k" * 21: "v"}),
        f"client {A}: client.tag.{'k' * 21} is too long; a key has at most 20 characters, a value 30",
    ),
    (
        put("clients", 0, "tags", {str(key): "v" for key in range(6)}),
        f"client {A}: 6 client tags, but Kafka allows 5; drop some",
    ),
    (put("tasks", 1, "id", "0_0"), "task 0_0: listed twice; leave one of them out"),
    (
        put("tasks", 0, "id", "first"),
        "task 'first': an id is SUBTOPOLOGY_PARTITION, such as 0_3; fix it in the file",
    ),
    (put("tasks", 0, "source", []), "task 0_0: has no source partitions; a task reads at least one"),
    (
        put("tasks", 0, "source", ["in"]),
        "partition 'in': it is written TOPIC:NUMBER; fix it in the file",
    ),
    (put("tasks", 0, "source", ["in:0", "in:0"]), "task 0_0: source: names in:0 twice; leave one of them out"),
    (
        put("tasks", 0, "changelog", []),
        "task 0_0: is stateful but has no changelog to price its standbys by; add it, or give streams audit "
        "--changelog 0=TOPIC",
    ),
    (
        put("tasks", 0, "sink", ["out"]),
        'task 0_0: there is no key "sink"; there are id, source, stateful, changelog',
    ),
    (put("partitions", "in:0", "r1"), 'problem: partitions: in:0 is "r1", not a list; fix it in the file'),
    (
        put("partitions", "in:0", [1]),
        "problem: partitions: in:0[0] is 1, not a string; fix it in the file",
    ),
    (put("partitions", "in", []), "partition 'in': it is written TOPIC:NUMBER; fix it in the file"),
    (put("partitions", "in", ["r1"]), "partition 'in': it is written TOPIC:NUMBER; fix it in the file"),
    (put("partitions", "in", None), "partition 'in': it is written TOPIC:NUMBER; fix it in the file"),
    (put("initial_active", B, ["0_1", "0_0"]), "task 0_0: is active on two clients; leave one of them out"),
    (put("initial_active", B, []), "task 0_1: is active on no client; add it to initial_active"),
    (
        put("initial_active", B, ["0_1", "2_0"]),
        "initial_active: task 2_0 is not among the tasks; add it or leave it out",
    ),
    (
        put("initial_active", B, ["0_1", "0_1"]),
        f"initial_active: client {B}: names 0_1 twice; leave one of them out",
    ),
    (
        put("initial_active", "stranger", []),
        "initial_active: client stranger is not among the clients; add it or leave it out",
    ),
    (
        put("initial_standby", A, ["0_0"]),
        f"task 0_0: is active and standby on client {A}; a standby is on another client",
    ),
    (
        put("initial_standby", B, ["1_0"]),
        "task 1_0: is stateless and has no standbys; take it out of initial_standby",
    ),
    (
        put("config", "strategy", "cheapest"),
        "rack.aware.assignment.strategy is 'cheapest'; choose none, min_traffic (min_cost in KIP-925) or balance_subtopology "
        "(balanced_min_cost)",
    ),
    (
        put("config", "traffic_cost", -1),
        "rack.aware.assignment.traffic_cost is -1, outside 0 to 2147483647; fix it in the file",
    ),
    (
        put("config", "non_overlap_cost", -1),
        "rack.aware.assignment.non_overlap_cost is -1, outside 0 to 2147483647; fix it in the file",
    ),
    (
        put("config", "max_warmup_replicas", 0),
        "max.warmup.replicas is 0, outside 1 to 2147483647; fix it in the file",
    ),
    (
        put("config", "acceptable_recovery_lag", -5),
        "acceptable.recovery.lag is -5, outside 0 to 9223372036854775807; fix it in the file",
    ),
    (
        put("config", "probing_rebalance_interval_ms", 5),
        "probing.rebalance.interval.ms is 5, outside 60000 to 9223372036854775807; fix it in the file",
    ),
    (
        put("config", "num_standbys", True),
        "config: num_standbys is true, not a whole number; fix it in the file",
    ),
    (
        put("config", "rack_aware_assignment_tags", list("abcdef")),
        "rack.aware.assignment.tags names 6 tags, but Kafka allows 5; drop some",
    ),
    (
        put("config", "rack_aware_assignment_tags", ["a", "a"]),
        "rack.aware.assignment.tags names a tag twice: a, a; leave one of them out",
    ),
    (
        put("config", "num.standby.replicas", 2),
        "config: num_standbys is given twice, also as num.standby.replicas; leave one of them out",
    ),
    (
        put("config", "rack.aware.assignment.stategy", "min_traffic"),
        "config: rack.aware.assignment.stategy is unknown; the nearest key is rack.aware.assignment.strategy",
    ),
    (
        put("config", "rack.aware.asignment.trafic.cost", 3),
        "config: rack.aware.asignment.trafic.cost is unknown; the nearest key is rack.aware.assignment.traffic_cost",
    ),
    (
        put("config", "rack_aware_assignment_tag", ["zone"]),
        "config: rack_aware_assignment_tag is unknown; the nearest key is rack_aware_assignment_tags",
    ),
]


@pytest.mark.parametrize(("change", "line"), WRONG, ids=[line[:60] for _, line in WRONG])
def test_a_wrong_problem_is_refused_in_one_line(change: Change, line: str) -> None:
    document = deepcopy(GOOD)
    change(document)
    with pytest.raises(RackspanError) as refused:
        from_document(document)
    assert str(refused.value) == line


@pytest.mark.parametrize(
    ("weights", "line"),
    [
        (None, "problem: partition_weights is missing; add it and run again"),
        ({"in:0": 1}, "partition in:1: has no weight; give every partition of a task one in partition_weights"),
        (
            {**dict.fromkeys(GOOD["partitions"], 1), "in:0": -1},
            "partition in:0: weight is -1, outside 0 to 1099511627776; give weights in a larger unit",
        ),
        (
            {**dict.fromkeys(GOOD["partitions"], 1), "in:1": 2**40 + 1},
            "partition in:1: weight is 1099511627777, outside 0 to 1099511627776; give weights in a larger unit",
        ),
        (
            dict.fromkeys(["x:2", "x:1", "x:0"], 1),
            "partition_weights: partition x:0 is not among the partitions; add it or leave it out",
        ),
        ({"x:0": 1}, "partition_weights: partition x:0 is not among the partitions; add it or leave it out"),
    ],
)
def test_wrong_weights_are_refused_when_weights_are_used(weights: object, line: str) -> None:
    with pytest.raises(InvalidProblem) as refused:
        from_document({**GOOD, "partition_weights": weights}, weighted=True)
    assert str(refused.value) == line


def test_weights_are_0_to_a_tib() -> None:
    weights = {**dict.fromkeys(GOOD["partitions"], 0), "in:1": 2**40}
    given = from_document({**GOOD, "partition_weights": weights}, weighted=True)
    assert given.partitions.weight.tolist() == [0, 2**40, 0, 0, 0]


def test_lags_are_read_from_unknown_to_any_number() -> None:
    document = deepcopy(GOOD)
    document["clients"][0]["lags"] = {"0_0": -3, "0_1": -2, "1_0": 0}
    assert from_document(document).clients[0].lags == {0: -3, 1: -2, 2: 0}


def test_of_several_wrong_standbys_the_first_by_task_is_named() -> None:
    """A set of 8 and 1 has 8 first."""
    document = deepcopy(GOOD)
    document["tasks"] = [{"id": f"0_{at}", "source": [f"in:{at}"]} for at in range(9)]
    document["initial_active"] = {A: [f"0_{at}" for at in range(9)], B: []}
    document["initial_standby"] = {A: ["0_8", "0_1"], B: []}
    with pytest.raises(InvalidProblem, match=r"^task 0_1: is stateless"):
        from_document(document)
    for task in document["tasks"]:
        task.update(stateful=True, changelog=["log:0"])
    with pytest.raises(InvalidProblem, match=r"^task 0_1: is active and standby on client"):
        from_document(document)


def test_a_document_that_is_no_problem_is_refused_in_one_line() -> None:
    with pytest.raises(InvalidProblem, match=r"^problem: is \[\], not an object[^\n]*$"):
        from_document([])


def test_clients_and_tasks_come_in_kafkas_order_however_they_are_listed() -> None:
    given, shuffled = from_document(GOOD), deepcopy(GOOD)
    shuffled["clients"].reverse()
    shuffled["tasks"].reverse()
    again = from_document(shuffled)
    assert given.tasks.ids == again.tasks.ids == ("0_0", "0_1", "1_0")
    assert given.clients == again.clients
    assert given.initial_standby == again.initial_standby


def test_null_configs_are_kafkas_defaults() -> None:
    nulls = dict.fromkeys(("strategy", "traffic_cost", "non_overlap_cost", "num_standbys", "max_warmup_replicas"))
    assert from_document({**GOOD, "config": nulls}).configs == AssignmentConfigs()


def test_kafkas_own_keys_and_the_proposals_names_are_accepted() -> None:
    configs = {"rack.aware.assignment.strategy": "balanced_min_cost", "rack.aware.assignment.traffic_cost": 3}
    read_configs = from_document({**GOOD, "config": configs}).configs
    assert (read_configs.strategy, read_configs.traffic_cost) == (Strategy.BALANCE_SUBTOPOLOGY, 3)


CONFIGS: list[tuple[str, object, AssignmentConfigs]] = [
    ("rack.aware.assignment.strategy", "min_traffic", AssignmentConfigs(strategy=Strategy.MIN_TRAFFIC)),
    ("rack.aware.assignment.enabled", False, AssignmentConfigs(enabled=False)),
    ("rack.aware.assignment.traffic_cost", 3, AssignmentConfigs(traffic_cost=3)),
    ("rack.aware.assignment.non_overlap_cost", 4, AssignmentConfigs(non_overlap_cost=4)),
    ("rack.aware.assignment.tags", ["zone"], AssignmentConfigs(rack_aware_assignment_tags=("zone",))),
    ("num.standby.replicas", 2, AssignmentConfigs(num_standbys=2)),
    ("max.warmup.replicas", 5, AssignmentConfigs(max_warmup_replicas=5)),
    ("acceptable.recovery.lag", 6, AssignmentConfigs(acceptable_recovery_lag=6)),
    ("probing.rebalance.interval.ms", 60_001, AssignmentConfigs(probing_rebalance_interval_ms=60_001)),
]
"""Kafka's configs by Kafka's names, written out here: the table that reads them must have these and no others."""


@pytest.mark.parametrize(("key", "value", "configs"), CONFIGS, ids=[key for key, _, _ in CONFIGS])
def test_a_config_by_kafkas_name_sets_that_config_alone(key: str, value: object, configs: AssignmentConfigs) -> None:
    read = from_document({**GOOD, "config": {key: value}})
    assert (read.configs, read.warnings) == (configs, ())


@pytest.mark.parametrize(("text", "tags"), [("zone", ("zone",)), ("zone, cluster", ("zone", "cluster")), ("", ())])
def test_tags_may_be_written_as_in_kafkas_properties(text: str, tags: tuple[str, ...]) -> None:
    read = from_document({**GOOD, "config": {"rack.aware.assignment.tags": text}})
    assert read.configs.rack_aware_assignment_tags == tags


def test_every_config_that_is_read_by_kafkas_name_is_asserted() -> None:
    assert [key for key, _, _ in CONFIGS] == list(KAFKA_KEYS)


def test_every_key_of_a_problem_is_known() -> None:
    document = {**deepcopy(GOOD), "name": "n", "seed": 7, "partition_weights": {"in:0": 1}}
    assert from_document(document).warnings == ()


def test_unknown_keys_and_tasks_that_are_gone_are_warned_of() -> None:
    document = deepcopy(GOOD)
    document["comment"] = "?"
    document["config"]["retries"] = 3
    document["clients"][0]["prev_active"] = ["7_7"]
    assert from_document(document).warnings == (
        "problem: unknown key 'comment' ignored",
        "config: unknown key 'retries' ignored",
        f"client {A}: prev_active: task 7_7 is not among the tasks; ignored",
    )


def test_unknown_configs_are_warned_of_in_order() -> None:
    _, warnings = read_configs(dict.fromkeys("gfedcba", 1))
    assert warnings == [f"config: unknown key '{key}' ignored" for key in "abcdefg"]


def test_a_group_without_standbys_needs_no_changelogs() -> None:
    document = deepcopy(GOOD)
    document["config"]["num_standbys"] = 0
    document["initial_standby"] = {A: [], B: []}
    document["tasks"][0]["changelog"] = []
    assert from_document(document).initial_standby == (frozenset(), frozenset())
    document["initial_standby"] = {A: ["0_1"], B: []}
    with pytest.raises(InvalidProblem, match="task 0_0: is stateful but has no changelog"):
        from_document(document)


def test_changelogs_are_needed_for_a_number_of_standbys_and_only_where_racks_count() -> None:
    document = deepcopy(GOOD)
    del document["initial_standby"]
    document["tasks"][0]["changelog"] = []
    with pytest.raises(InvalidProblem, match="task 0_0: is stateful but has no changelog"):
        from_document(document)
    document["config"]["strategy"] = "none"
    assert from_document(document).initial_standby is None


def test_a_task_of_a_named_topology_without_a_changelog_is_refused_by_its_sub_topology() -> None:
    document = deepcopy(GOOD)
    document["tasks"] = [{"id": "billing__2_7", "stateful": True, "source": ["in:7"]}]
    document["initial_active"], document["initial_standby"] = {A: ["billing__2_7"], B: []}, {}
    with pytest.raises(InvalidProblem, match=r"--changelog billing__2=TOPIC$"):
        from_document(document)


def test_a_task_is_stateless_unless_it_says_otherwise() -> None:
    document = deepcopy(GOOD)
    del document["tasks"][2]["stateful"]
    assert from_document(document).tasks.stateful.tolist() == [True, True, False]
