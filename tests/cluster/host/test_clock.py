import time

from rackspan.cluster.host.shared_services import Clock


def test_time_runs_on_except_while_the_process_is_suspended() -> None:
    readings = iter([100.0, 100.05, 100.5, 105.5, 105.6, 106.1])
    clock = Clock(lambda: int(next(readings) * 1e9), lambda: 7_000 * 10**9)
    assert [clock.now() for _ in range(5)] == [7_000_050, 7_000_500, 7_001_000, 7_001_100, 7_001_600]


def test_a_clock_begins_with_the_wall_clock_time() -> None:
    before = time.time_ns() // 1_000_000
    assert before <= Clock().now() <= time.time_ns() // 1_000_000 + 1
