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


def test_the_numbers_of_a_task_id_are_javas_ints() -> None:
    assert task_order("2147483647_2147483647") == ("", 2147483647, 2147483647)
    for task in ("2147483648_0", "0_2147483648"):
        with pytest.raises(InvalidProblem) as refused:
            task_order(task)
        assert str(refused.value) == f"task '{task}': both numbers of an id are at most 2147483647; fix it in the file"


def test_both_halves_of_a_process_id_are_signed() -> None:
    assert process_order("7FFFFFFF-ffff-ffff-8000-000000000000") == (2**63 - 1, -(2**63))
    assert process_order("80000000-0000-0000-7fff-ffffffffffff") == (-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    "process", ["0000000000000000000000000000000a", "{00000000-0000-0000-0000-00000000000a}", "a", ""]
)
def test_a_process_id_is_written_as_java_writes_it(process: str) -> None:
    with pytest.raises(InvalidProblem) as refused:
        process_order(process)
    assert (
        str(refused.value)
        == f"client '{process}': a process id is a UUID such as 00000000-0000-0000-0000-000000000001; fix it in the file"
    )


def test_a_topic_may_hold_a_colon_and_a_number_ten_digits() -> None:
    assert (topic_of("a:b:3"), topic_of("a:2147483647")) == ("a:b", "a")
