import time

import pytest

from rackspan.cluster.host.clock import Clock


def test_time_runs_on_but_for_what_the_process_stood_still(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([100.0, 100.05, 100.5, 105.5, 105.6, 106.1])
    monkeypatch.setattr(time, "monotonic_ns", lambda: int(next(moments) * 1e9))
    monkeypatch.setattr(time, "time_ns", lambda: 7_000 * 10**9)
    clock = Clock()
    assert [clock.now() for _ in range(5)] == [7_000_050, 7_000_500, 7_001_000, 7_001_100, 7_001_600]


def test_it_begins_with_the_walls_time() -> None:
    before = time.time_ns() // 1_000_000
    assert before <= Clock().now() <= time.time_ns() // 1_000_000 + 1
