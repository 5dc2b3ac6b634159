from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.errors import InvalidSnapshot
from rackspan.pipeline import paths

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
TIMESTAMPS = st.datetimes(min_value=datetime(1000, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - a bound is naive


@given(NAMES)
def test_any_name_comes_back_from_its_folder(name: str) -> None:
    folder = paths.pair("cluster_id", name)
    assert "/" not in folder
    assert paths.value_of("cluster_id", folder) == name


def test_names_are_escaped_as_hive_does() -> None:
    assert paths.pair("cluster_id", "a/b=c %é") == "cluster_id=a%2Fb%3Dc %25é"


@pytest.mark.parametrize("folder", ["cluster_id", "cluster_id=", "day=1", "cluster_id=a%2fb", "cluster_id=a=b"])
def test_a_folder_of_another_is_none_of_ours(folder: str) -> None:
    assert paths.value_of("cluster_id", folder) is None


@pytest.mark.parametrize("name", ["x" * 300, "half \ud800 of a pair"])
def test_a_name_that_no_folder_can_have_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(InvalidSnapshot, match=r"no name that a folder can have"):
        paths.pair("cluster_id", name)


@given(st.lists(TIMESTAMPS, min_size=2, max_size=2))
def test_timestamps_are_parsed_back_and_sort_as_time_does(timestamps: list[datetime]) -> None:
    texts = [paths.timestamp_text(timestamp) for timestamp in timestamps]
    assert [paths.timestamp_of(text) for text in texts] == timestamps
    assert (texts[0] < texts[1]) == (timestamps[0] < timestamps[1])


def test_a_timestamp_is_written_in_utc() -> None:
    timestamp = datetime(2026, 11, 21, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert paths.timestamp_text(timestamp) == "20261120T233000.000000Z"
    assert paths.day_text(timestamp) == "2026-11-20"


@pytest.mark.parametrize(
    "text", ["", "20261120T233000Z", "2026-11-20", "20261120T233000.0Z", "20261320T233000.000000Z"]
)
def test_what_is_no_timestamp_is_none(text: str) -> None:
    assert paths.timestamp_of(text) is None
