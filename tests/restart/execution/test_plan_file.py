"""The batches of a plan, from its document."""

import json
import re
from random import Random

import pytest

from rackspan.errors import UsageError
from rackspan.restart import BlockOn, RestartRequest, StopPolicy, plan_restart
from rackspan.restart.execution.plan_file import (
    PlannedBatch,
    RestartBatches,
    batches_of,
    command_for,
    read_restart_plan,
)
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
        ({"accept": "("}, "accept '(': not a regular expression: "),
        ({"accept": "("}, "; make the plan again with rackspan restart plan -o json"),
        ({"margin": -1}, "margin is -1"),
        ({"block_on": ["fire"]}, 'block_on[0] is "fire", expected one-copy or rf1; make the plan again'),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        read_restart_plan(json.dumps({**PLAN, **changed}).encode())


def test_a_command_has_the_ids_of_the_batch_wherever_it_names_them() -> None:
    assert command_for("restart {brokers} && echo {brokers}", (1, 4, 12)) == "restart 1,4,12 && echo 1,4,12"
    assert command_for("{brokers}", (7,)) == "7"


@pytest.mark.parametrize("command", ["restart", "restart {broker}", ""])
def test_a_command_that_names_no_brokers_is_refused(command: str) -> None:
    expected = f"--exec {command!r}: names no brokers; write {{brokers}} where their ids belong"
    with pytest.raises(UsageError, match=f"^{re.escape(expected)}$"):
        command_for(command, (1,))


def test_a_plan_is_read_field_by_field() -> None:
    content = (
        b'{"cluster_id": null, "as_of": "2026-11-23T00:00:00Z", "margin": 2, "block_on": ["one-copy", "rf1"],'
        b' "accept": "t.*", "batches": [{"brokers": [4, 1], "reason": "rack a"}, {"brokers": [2]}], "blocked": []}'
    )
    read = read_restart_plan(content)
    assert read == RestartBatches(
        None,
        "2026-11-23T00:00:00Z",
        2,
        (BlockOn.ONE_COPY, BlockOn.RF1),
        "t.*",
        (PlannedBatch((4, 1)), PlannedBatch((2,))),
    )
    assert read.stop == StopPolicy(2, frozenset({BlockOn.ONE_COPY, BlockOn.RF1}), re.compile("t.*"))
    assert read_restart_plan(json.dumps(PLAN).encode()).stop == StopPolicy()
