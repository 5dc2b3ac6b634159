import json
from pathlib import Path

import pytest

from rackspan.audit import RackPolicy, Severity
from rackspan.plan import order_steps, plan_document
from rackspan.plan.reassignment_file import reassignment_json
from rackspan.reassign import (
    ListedPartition,
    PartitionReassignment,
    ReassignmentDocument,
    ReassignmentRequest,
    lint,
    plan,
)
from tests.compat.reassign_tool import generated, moves, parsed
from tests.reassign.instances import NAMES, instance
from tests.reassign.plans import originals, targets

pytestmark = pytest.mark.java


def test_kafka_reads_our_plan_and_its_undo_as_they_are(tmp_path: Path) -> None:
    snapshot, file = instance("broker lost", 1_000), tmp_path / "plan.json"
    planned = order_steps(snapshot, plan(snapshot, request=ReassignmentRequest(replace_missing=True)))
    file.write_text(json.dumps(plan_document(planned)))
    assert parsed(file) == {(topic, partition): replicas for topic, partition, replicas in targets(planned)}
    undone = [PartitionReassignment(*one.topic_partition, one.undo) for one in planned.partitions()]
    file.write_text(reassignment_json(undone))
    assert parsed(file) == originals(planned)


def test_kafka_refuses_in_the_words_we_promise(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text('{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[0,0]}]}')
    assert (
        parsed(file)
        == "Partition replica lists may not contain duplicate entries: foo-0 contains multiple entries for 0"
    )


@pytest.mark.rest
@pytest.mark.parametrize("name", NAMES)
def test_kafkas_own_proposal_breaks_no_rule_and_copies_far_more(name: str, tmp_path: Path) -> None:
    snapshot = instance(name, 1_000)
    proposed, _ = generated(snapshot, tmp_path)
    document = ReassignmentDocument(tuple(ListedPartition(*place, replicas) for place, replicas in proposed.items()))
    found = lint(snapshot, RackPolicy(), document)
    assert not [one for one in found if one.severity is Severity.VIOLATION]
    assert "plan-needless-moves" in {one.constraint for one in found}
    assert moves(snapshot, proposed) > 1.5 * plan(snapshot, request=ReassignmentRequest(replace_missing=True)).moves
