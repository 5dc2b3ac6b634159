"""The interface of a rack locator: its input, and how its result is checked."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given

from rackspan.errors import RackLocatorFailed, UsageError
from rackspan.model import Broker, BrokerId, ClusterSnapshot, Controller, RackId, columns
from rackspan.sources.rack_locator import ClusterView, located, parse_properties, rack_info
from rackspan.sources.rack_locators import make
from tests.strategies import snapshots

BROKERS = (Broker(BrokerId(1), RackId("a"), host="h1"), Broker(BrokerId(2), None, host="h2"))
CLUSTER = ClusterView(BROKERS, "c")


class FixedLocator:
    """A locator with a fixed result; it records the views it was given."""

    def __init__(self, result: Callable[[], Any]) -> None:
        self.result = result
        self.views: list[ClusterView] = []

    def rack_info(self, cluster: ClusterView) -> Mapping[BrokerId, RackId]:
        self.views.append(cluster)
        racks: Mapping[BrokerId, RackId] = self.result()
        return racks


def cluster_of(controllers: tuple[Controller, ...] = ()) -> ClusterSnapshot:
    none = columns(topic=[], partition=[], leader=[], replicas=[], isr=[])
    return ClusterSnapshot(brokers=BROKERS, topics=(), partitions=none, cluster_id="c", controllers=controllers)


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        # The draft's own example, and its way to write a mapping.
        ("username=foo,password=bar", {"username": "foo", "password": "bar"}),
        ("0=rack1,1=rack2", {"0": "rack1", "1": "rack2"}),
        ("", {}),
        ("  ", {}),
        (" a = 1 , b = 2 ", {"a": "1", "b": "2"}),
        ("url=http://h/?a=b", {"url": "http://h/?a=b"}),
        (r"pattern=(\w{1\,3})\d,x=", {"pattern": r"(\w{1,3})\d", "x": ""}),
    ],
)
def test_properties_are_pairs_between_commas(text: str, properties: dict[str, str]) -> None:
    assert parse_properties(text) == properties


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("username=foo,secret", "pair 2 is not key=value; write them as a=1,b=2"),
        ("=foo", "pair 1 is not key=value; write them as a=1,b=2"),
        ("a=1,,b=2", "pair 2 is not key=value; write them as a=1,b=2"),
        ("a=1,", "pair 2 is not key=value; write them as a=1,b=2"),
        ("a=secret,b=2,a=other", "a is given twice; leave one of them out"),
    ],
)
def test_malformed_properties_are_an_error_that_shows_no_value(text: str, line: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_properties(text)
    assert str(refusal.value) == f"rack.locator.properties: {line}"


def test_the_view_is_passed_at_every_call_and_the_newest_result_counts() -> None:
    results = iter([{1: "x", 2: "x"}, {2: "y", 77: "z"}, {}])
    locator = FixedLocator(lambda: next(results))
    racks_of = [[broker.rack for broker in located(cluster_of(), locator).brokers] for _ in range(3)]
    assert racks_of == [["x", "x"], [None, "y"], [None, None]]
    assert locator.views == [CLUSTER] * 3


def test_a_controller_shares_the_rack_of_the_broker_in_its_process() -> None:
    voters = (Controller(BrokerId(1), RackId("a")), Controller(BrokerId(101), RackId("q")))
    moved = located(cluster_of(voters), FixedLocator(lambda: {1: "x", 101: "z"}))
    assert [one.rack for one in moved.controllers] == ["x", "q"]


@given(snapshots())
def test_a_snapshot_located_as_registered_is_the_same_but_for_controllers_of_brokers(snapshot: ClusterSnapshot) -> None:
    same = located(snapshot, make("registered", {}))
    assert same.brokers == snapshot.brokers
    assert same.partitions.same_as(snapshot.partitions)
    assert (same.topics, same.cluster_id, same.taken_at) == (snapshot.topics, snapshot.cluster_id, snapshot.taken_at)


def broken() -> Any:
    raise KeyError("rack of broker\n2")


@pytest.mark.parametrize(
    ("result", "line"),
    [
        (lambda: None, "returned NoneType, not a mapping of racks; fix it"),
        (lambda: ["a"], "returned list, not a mapping of racks; fix it"),
        (lambda: {"1": "a"}, "'1' is not a broker id; return whole numbers"),
        (lambda: {-1: "a"}, "-1 is not a broker id; return whole numbers"),
        (lambda: {True: "a"}, "True is not a broker id; return whole numbers"),
        (lambda: {1: ""}, "broker 1 in rack '', but a rack is a name; leave the broker out instead"),
        (lambda: {1: None}, "broker 1 in rack None, but a rack is a name; leave the broker out instead"),
        (broken, "KeyError: 'rack of broker\\n2'; --debug shows where"),
    ],
)
def test_an_invalid_result_is_reported_in_one_line(result: Callable[[], Any], line: str) -> None:
    with pytest.raises(RackLocatorFailed) as refusal:
        rack_info(FixedLocator(result), CLUSTER)
    assert str(refusal.value) == f"rack locator FixedLocator: {line}"


def test_a_locators_own_refusal_is_passed_on() -> None:
    def refuse() -> Any:
        raise UsageError("as it was said")

    with pytest.raises(UsageError, match=r"^as it was said$"):
        rack_info(FixedLocator(refuse), CLUSTER)


def test_an_error_without_words_is_reported_as_one() -> None:
    def silent() -> Any:
        raise ValueError

    with pytest.raises(RackLocatorFailed, match=r"^rack locator FixedLocator: ValueError: no reason given; --debug"):
        rack_info(FixedLocator(silent), CLUSTER)
