from rackspan.cluster.core.broker.leadership.leader import DelayedProduce, DelayedProduces
from rackspan.cluster.core.ids import CorrelationId


def produces(*required_and_deadline: tuple[int, int]) -> DelayedProduces:
    waiting = DelayedProduces()
    for number, (required, deadline) in enumerate(required_and_deadline):
        waiting.add(DelayedProduce(CorrelationId(number), required, required - 1, deadline))
    return waiting


def numbers(popped: list[DelayedProduce]) -> list[int]:
    return [int(one.correlation_id) for one in popped]


def test_the_watermark_frees_what_requires_no_more_in_the_order_of_offsets() -> None:
    waiting = produces((7, 0), (5, 0), (5, 0), (9, 0))
    assert [waiting.has_reached(mark) for mark in (4, 5)] == [False, True]
    assert numbers(waiting.pop_reached(4)) == []
    assert numbers(waiting.pop_reached(7)) == [1, 2, 0]
    assert (len(waiting), waiting.has_reached(8)) == (1, False)


def test_a_deadline_is_over_at_its_millisecond_and_the_others_wait_on_in_order() -> None:
    waiting = produces((5, 30), (6, 10), (7, 20), (8, 21))
    assert numbers(waiting.pop_expired(9)) == []
    assert sorted(numbers(waiting.pop_expired(20))) == [1, 2]
    assert len(waiting) == 2
    assert numbers(waiting.pop_reached(8)) == [0, 3]


def test_all_are_given_back_once() -> None:
    waiting = produces((7, 0), (5, 0))
    assert sorted(numbers(waiting.pop_all())) == [0, 1]
    assert (len(waiting), waiting.pop_all(), waiting.has_reached(99)) == (0, [], False)
