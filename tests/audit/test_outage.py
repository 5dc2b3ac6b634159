import re

import pytest
from hypothesis import given

from rackspan.audit import RackPolicy, outage
from rackspan.audit.outage import LOSSES_MAX, losses_to_judge
from rackspan.errors import UsageError
from rackspan.model import ClusterSnapshot, RackId
from tests.strategies import TOPICS, snapshots

A, B, C = map(RackId, "abc")


def test_each_rack_each_pair_or_the_named_ones_together_are_lost() -> None:
    assert losses_to_judge([C, A, B], None, False) == [(A,), (B,), (C,)]
    assert losses_to_judge([C, A, B], None, True) == [(A, B), (A, C), (B, C)]
    assert losses_to_judge([C, A, B], ("c", "a", "c"), True) == [(A, C)]


def test_a_rack_that_is_not_in_the_cluster_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError) as refused:
        losses_to_judge([B, A], ("a", "z"), False)
    assert str(refused.value) == "rack 'z': not in this cluster; it has a, b"
    with pytest.raises(UsageError, match="it has no racks"):
        losses_to_judge([], ("z",), False)


def test_so_many_losses_are_judged_and_no_more() -> None:
    racks = [RackId(f"r{number}") for number in range(LOSSES_MAX + 1)]
    assert len(losses_to_judge(racks[1:], None, False)) == LOSSES_MAX
    with pytest.raises(UsageError, match="2001 losses to judge; name the ones you mean with --lose RACK,RACK"):
        losses_to_judge(racks, None, False)
    assert len(losses_to_judge(racks, ("r1", "r2"), False)) == 1


@pytest.mark.slow
@given(snapshots())
def test_a_filter_of_topics_leaves_their_harm_as_it_is_and_no_other(snapshot: ClusterSnapshot) -> None:
    name = TOPICS[0]
    for whole, some in zip(
        outage(snapshot, RackPolicy())[1], outage(snapshot, RackPolicy(), re.compile(re.escape(name)))[1], strict=True
    ):
        assert some.topics == tuple(topic for topic in whole.topics if topic.topic == name)
        assert (some.racks, some.quorum) == (whole.racks, whole.quorum)
