"""Plans to carry out, as Hypothesis draws them."""

from hypothesis import strategies as st

from rackspan.reassign import PartitionReassignment, ReassignmentPlan, Step

BROKERS = range(1, 8)

replica_lists = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=4, unique=True).map(tuple)


@st.composite
def reassignment_plans(draw: st.DrawFn) -> ReassignmentPlan:
    """Up to six partitions of two topics in up to three steps; growing, shrinking, reordering, or nothing at all."""
    places = draw(
        st.lists(
            st.tuples(st.sampled_from(["orders", "payments"]), st.integers(0, 4)), min_size=1, max_size=6, unique=True
        )
    )
    moves = [
        PartitionReassignment(topic, partition, draw(replica_lists), draw(replica_lists)) for topic, partition in places
    ]
    cuts = sorted(draw(st.sets(st.integers(1, 5), max_size=2)) & set(range(1, len(moves))))
    parts = [moves[start:end] for start, end in zip([0, *cuts], [*cuts, len(moves)], strict=True)]
    ids = {topic: f"id-of-{topic}" for topic, _ in places}
    return ReassignmentPlan(
        "the-cluster", ids, tuple(Step.of(number, "", tuple(part)) for number, part in enumerate(parts, start=1))
    )
