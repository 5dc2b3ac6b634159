"""The batches of a plan, from its document."""

import json
import re
from random import Random

import pytest

from rackspan.errors import UsageError
from rackspan.restart import BlockOn, RestartRequest, StopPolicy, plan_restart
from rackspan.restart.execution.plan_file import batches_of, read_restart_plan
from rackspan.restart.json_format import restart_plan_document
from tests.restart.clusters import random_cluster

PLAN = {"cluster_id": "c1", "as_of": None, "margin": 0, "block_on": [], "accept": None, "batches": [{"brokers": [1]}]}


def test_the_document_of_a_plan_is_read_back() -> None:
    stop = StopPolicy(1, frozenset({BlockOn.RF1}), re.compile("t.*"))
    plan = plan_restart(random_cluster(Random(7)), stop=stop, request=RestartRequest(max_batch=1))
    read = read_restart_plan(json.dumps(restart_plan_document(plan)).encode())
    assert read == batches_of(plan)
    assert [batch.brokers for batch in read.batches] == [batch.brokers for batch in plan.batches]
    assert read.stop == stop


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"batches": [{"brokers": [1, 2]}, {"brokers": [2]}]}, "broker 2: in the batches twice; make the plan again"),
        ({"batches": [{"brokers": []}]}, "brokers is empty; make the plan again"),
        ({"batches": None}, "batches is null, not a list; make the plan again"),
        ({"accept": "("}, "accept '(': not a regular expression"),
        ({"block_on": ["fire"]}, 'block_on[0] is "fire", expected one-copy or rf1; make the plan again'),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        read_restart_plan(json.dumps({**PLAN, **changed}).encode())
