import pytest

from rackspan.errors import UsageError
from rackspan.streams.live.capture import find_changelogs
from rackspan.streams.live.streams_group import StreamsGroup, streams_group
from tests.streams.groups import described, member


def group() -> StreamsGroup:
    """Sub-topology 0 of two tasks; 1 of three; 2 of three behind a repartition topic."""
    sources = {f"0_{at}": [f"clicks:{at}"] for at in range(2)}
    sources |= {f"1_{at}": [f"orders:{at}"] for at in range(3)}
    sources |= {f"2_{at}": [f"shop-counts-repartition:{at}"] for at in range(3)}
    return streams_group(described(member("a", active=sources)))


def test_a_store_goes_with_the_repartition_topic_of_its_name() -> None:
    found = find_changelogs(group(), {"shop-counts-changelog": 3}, {})
    assert (found.of, found.unknown) == ({"2": ("shop-counts-changelog",)}, ())


def test_a_store_goes_with_the_only_sub_topology_of_its_size() -> None:
    found = find_changelogs(group(), {"shop-seen-changelog": 2, "shop-last-changelog": 2}, {})
    assert found.of == {"0": ("shop-last-changelog", "shop-seen-changelog")}


def test_a_changelog_that_two_could_own_is_unknown_until_it_is_given() -> None:
    counts = {"shop-names-changelog": 3}
    found = find_changelogs(group(), counts, {})
    assert (found.of, found.unknown) == (
        {},
        (
            "changelog shop-names-changelog: any of the sub-topologies 1, 2 could own it; name it with --changelog 1=shop-names-changelog",
        ),
    )
    assert find_changelogs(group(), counts, {"1": ["shop-names-changelog"]}).of == {"1": ("shop-names-changelog",)}


def test_topics_of_others_are_left_alone_and_strange_sizes_named() -> None:
    found = find_changelogs(group(), {"shoe-x-changelog": 2, "shop-x": 2, "shop-y-changelog": 9}, {})
    assert found.of == {}
    assert found.unknown == (
        "changelog shop-y-changelog: no sub-topology has as many tasks as it has partitions; is it of another application?",
    )


def test_a_source_topic_may_be_named_as_the_changelog_it_also_is() -> None:
    assert find_changelogs(group(), {"orders": 3}, {"1": ["orders"]}).of == {"1": ("orders",)}


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"7": ["x"]}, "--changelog 7=…: group shop has no sub-topology 7; it has 0, 1, 2"),
        ({"1": ["absent"]}, "--changelog 1=absent: the topic has 0 partitions for 3 tasks; name another"),
    ],
)
def test_a_wrong_option_gets_one_line(given: dict[str, list[str]], line: str) -> None:
    with pytest.raises(UsageError) as refused:
        find_changelogs(group(), {"orders": 3}, given)
    assert str(refused.value) == line
