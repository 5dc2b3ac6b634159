from hypothesis import given
from hypothesis import strategies as st

from rackspan.prometheus_metrics.durations import BOUNDS_SECONDS, Durations


@given(st.lists(st.sampled_from([*BOUNDS_SECONDS, 0.0, 0.0011, 3.0, 60.0]), max_size=30))
def test_each_bucket_counts_the_durations_up_to_its_bound(seconds: list[float]) -> None:
    durations = Durations()
    for duration in seconds:
        durations.add(duration)
    expected = [(str(bound), sum(duration <= bound for duration in seconds)) for bound in BOUNDS_SECONDS]
    assert list(durations.buckets()) == [*expected, ("+Inf", len(seconds))]
    assert (durations.count, durations.sum_seconds) == (len(seconds), sum(seconds))
