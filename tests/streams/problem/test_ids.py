import pytest

from rackspan.errors import InvalidProblem
from rackspan.streams.problem import process_order, task_order, topic_of


def test_tasks_are_ordered_as_numbers_not_as_text() -> None:
    assert sorted(["0_10", "1_0", "0_9", "10_0"], key=task_order) == ["0_9", "0_10", "1_0", "10_0"]


def test_a_named_topology_comes_first_in_the_order() -> None:
    assert task_order("billing__2_7") == ("billing", 2, 7)


def test_process_ids_are_ordered_as_java_orders_uuids_by_signed_halves() -> None:
    low, high = "7fffffff-0000-4000-8000-000000000000", "80000000-0000-4000-8000-000000000000"
    assert low < high
    assert sorted([low, high], key=process_order) == [high, low]


@pytest.mark.parametrize("task", ["0", "a_b", "0_", "-1_0", "0_1_2", "99999999999_0"])
def test_a_wrong_task_id_is_refused(task: str) -> None:
    with pytest.raises(InvalidProblem, match=f"^task '{task}': an id is SUBTOPOLOGY_PARTITION"):
        task_order(task)


def test_a_topic_may_hold_a_colon() -> None:
    assert topic_of("a:b:3") == "a:b"
