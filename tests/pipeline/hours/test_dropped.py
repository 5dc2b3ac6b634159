"""The hours that rest on dropped snapshots, beside a plain loop over every hour and what it is made of."""

from datetime import date, datetime, timedelta
from random import Random

import pytest

from rackspan.pipeline.hours.dropped import hours_resting_on
from rackspan.pipeline.hours.work import HOUR, hour_id, hour_of
from rackspan.pipeline.landing.markers import StoredSnapshot
from tests.pipeline.examples import NOON


def stored(cluster_id: str, at: datetime) -> StoredSnapshot:
    return StoredSnapshot(f"{cluster_id} {at.isoformat()}", cluster_id, at, at.date(), 1, 1, 3, "", at)


def inputs(times: list[datetime], hour: datetime) -> list[datetime]:
    """What an hour is made of: the times in it, the last one before it and the first one after it."""
    before = [at for at in times if at < hour][-1:]
    return [*before, *(at for at in times if hour <= at < hour + HOUR), *[at for at in times if at >= hour + HOUR][:1]]


@pytest.mark.parametrize("seed", range(60))
def test_the_hours_are_those_that_are_made_of_a_lost_one_and_a_neighbour_is_judged_again(seed: int) -> None:
    rng = Random(seed)
    times = sorted(NOON + timedelta(minutes=rng.randrange(1, 3000)) for _ in range(rng.randint(1, 9)))
    lost = rng.sample(times, 1)
    left = [at for at in times if at not in lost]
    found = hours_resting_on([("one", at) for at in lost], [stored("one", at) for at in left] + [stored("two", NOON)])
    wanted: dict[date, set[str]] = {}
    hour = hour_of(times[0])
    while hour <= times[-1]:
        if lost[0] in inputs(times, hour):
            wanted.setdefault(hour.date(), set()).add(hour_id("one", hour))
        hour += HOUR
    assert found.by_day == wanted
    after = [at for at in left if at > lost[0]][:1] or left[-1:]
    assert found.judged_again == {stored("one", at).snapshot_id for at in after}
