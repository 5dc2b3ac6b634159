import numpy as np
import pytest

from rackspan.errors import UsageError
from rackspan.streams import from_document
from rackspan.streams.costs import cross_rack, crossings, equal_cost, owned_tasks
from rackspan.streams.problem import Costs
from tests.streams.formats.test_problem import GOOD, put
from tests.streams.test_rack_awareness import changed


def test_a_task_costs_its_source_partitions_without_a_replica_in_the_rack() -> None:
    given = from_document(changed(put("tasks", 0, "source", ["in:0", "in:1", "mid:0"])))
    assert cross_rack(given.tasks.source, given.partitions).tolist() == [[1, 1], [1, 0], [0, 0]]


def test_a_standby_costs_its_changelogs() -> None:
    given = from_document(GOOD)
    assert cross_rack(given.tasks.changelog, given.partitions).tolist() == [[0, 1], [1, 0], [0, 0]]


def test_leaving_the_present_client_costs_the_overlap() -> None:
    given = from_document(GOOD)
    assert given.initial_active is not None
    tasks = owned_tasks(given, given.stateful, given.initial_active, Costs(traffic=10, non_overlap=1))
    assert tasks.cost(tasks.owner) == 0
    assert tasks.cost(np.array([1, 0], dtype=np.int32)) == 22


def test_weights_count_in_place_of_partitions() -> None:
    weights = {"in:0": 7, "in:1": 5, "mid:0": 1, "log:0": 0, "log:1": 0}
    given = from_document({**GOOD, "partition_weights": weights}, weighted=True)
    assert cross_rack(given.tasks.source, given.partitions).tolist() == [[0, 7], [5, 0], [0, 0]]


def test_crossings_are_summed_over_the_tasks_of_each_client() -> None:
    given = from_document(GOOD)
    crossing = cross_rack(given.tasks.source, given.partitions)
    assert crossings(crossing, given.client_rack, [{1}, {0}]) == 2
    assert crossings(crossing, given.client_rack, [{0}, {1}]) == 0


def test_costs_are_equal_where_every_task_costs_the_same_in_all_racks() -> None:
    everywhere = {name: ["r1", "r2"] for name in GOOD["partitions"]}
    assert equal_cost(from_document({**GOOD, "partitions": everywhere}))
    assert not equal_cost(from_document(GOOD))


def test_costs_that_would_leave_64_bits_are_refused_not_wrapped() -> None:
    document = changed(put("config", "traffic_cost", 2**31 - 1), put("config", "non_overlap_cost", 2**31 - 1))
    weights = dict.fromkeys(GOOD["partitions"], 2**40)
    given = from_document({**document, "partition_weights": weights}, weighted=True)
    assert given.initial_active is not None
    with pytest.raises(UsageError, match=r"^a task can cost \d+, too much for an exact sum over 2 tasks"):
        owned_tasks(given, given.stateful, given.initial_active, Costs(2**31 - 1, 2**31 - 1))
