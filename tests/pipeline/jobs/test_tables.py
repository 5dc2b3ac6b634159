"""How many tasks write a table whose rows are not moved."""

from datetime import UTC, date, datetime, timedelta

import pytest

from rackspan.pipeline.jobs.tables import ROWS_PER_TASK, UNMOVED_DAYS_MAX, writing_tasks
from rackspan.pipeline.landing.markers import StoredSnapshot


def stored(day: int, partitions: int) -> StoredSnapshot:
    at = datetime(2026, 11, 1, tzinfo=UTC) + timedelta(days=day)
    return StoredSnapshot(f"{day}", "c", at, date(2026, 11, 1) + timedelta(days=day), 1, partitions, 3, "m")


@pytest.mark.parametrize(
    ("partitions", "tasks"),
    [([], 1), ([0], 1), ([1], 1), ([ROWS_PER_TASK], 1), ([ROWS_PER_TASK, 1], 2), ([3 * ROWS_PER_TASK], 3)],
)
def test_a_task_writes_so_many_rows(partitions: list[int], tasks: int) -> None:
    assert writing_tasks([stored(0, count) for count in partitions]) == tasks


def test_rows_of_many_days_go_to_the_task_of_their_day_first() -> None:
    assert writing_tasks([stored(day, ROWS_PER_TASK) for day in range(UNMOVED_DAYS_MAX)]) == UNMOVED_DAYS_MAX
    assert writing_tasks([stored(day, ROWS_PER_TASK) for day in range(UNMOVED_DAYS_MAX + 1)]) is None
