from random import Random

from rackspan.streams import from_document
from rackspan.streams.task_assignment import running_assignment
from tests.streams.problems import problem


def test_the_running_assignment_is_the_initial_one_else_that_of_the_previous_generation() -> None:
    document = problem(Random(5))
    given = running_assignment(from_document(document))
    before = running_assignment(from_document({**document, "initial_active": None}))
    assert sum(map(len, given.active)) == len(document["tasks"])
    assert before.active == tuple(client.prev_active for client in from_document(document).clients)
