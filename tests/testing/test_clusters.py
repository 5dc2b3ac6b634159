"""The clusters of a test run: one for each test, or one for each set of arguments, reset after each test and closed at the end."""

from inspect import signature
from typing import Any, cast
from unittest.mock import Mock

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import UsageError
from rackspan.testing import clusters
from rackspan.testing.clusters import Clusters, validated


class FakeCluster:
    """Notes what is done with it."""

    def __init__(self, arguments: dict[str, Any], done: list[str]) -> None:
        self.name = "+".join(f"{name}={value}" for name, value in arguments.items())
        self._done = done

    start: Any

    def __getattr__(self, method: str) -> Any:
        return lambda: self._done.append(f"{method} {self.name}")

    def __enter__(self) -> "FakeCluster":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(clusters, "_cluster", lambda arguments: FakeCluster(arguments, found))
    return found


def test_a_cluster_of_one_test_is_closed_after_it(done: list[str]) -> None:
    found = Clusters(shared=False)
    for _ in range(2):
        with found.for_test({"racks": 2}) as cluster:
            assert cluster.name == "racks=2"  # type: ignore[attr-defined]
            done.append("test")
    assert done == ["start racks=2", "test", "close racks=2"] * 2
    found.close()
    assert len(done) == 6


def test_a_shared_cluster_is_reset_after_each_test_and_closed_at_the_end(done: list[str]) -> None:
    found = Clusters(shared=True)
    for arguments in ({"racks": 2, "brokers": 4}, {"racks": 3}, {"brokers": 4, "racks": 2}):
        with found.for_test(arguments):
            done.append("test")
    assert done == [
        *("start racks=2+brokers=4", "test", "reset racks=2+brokers=4"),
        *("start racks=3", "test", "reset racks=3"),
        *("test", "reset racks=2+brokers=4"),
    ]
    found.close()
    assert sorted(done[8:]) == ["close racks=2+brokers=4", "close racks=3"]


def test_a_shared_cluster_that_cannot_be_reset_is_not_kept(done: list[str]) -> None:
    """As after a test that closed it."""
    found = Clusters(shared=True)
    with found.for_test({"racks": 3}):
        done.clear()
    with pytest.raises(UsageError), found.for_test({"racks": 2}) as cluster:
        cast("Any", cluster).reset = Mock(side_effect=UsageError("not running"))
    for racks in (2, 3):
        with found.for_test({"racks": racks}):
            done.append("test")
    assert done == [
        *("reset racks=3", "start racks=2", "close racks=2"),
        *("start racks=2", "test", "reset racks=2"),
        *("test", "reset racks=3"),
    ]


def test_a_shared_cluster_that_does_not_start_is_not_kept(monkeypatch: pytest.MonkeyPatch, done: list[str]) -> None:
    def failing(arguments: dict[str, Any]) -> FakeCluster:
        cluster = FakeCluster(arguments, done)
        cluster.start = lambda: 1 // 0
        return cluster

    found = Clusters(shared=True)
    monkeypatch.setattr(clusters, "_cluster", failing)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), found.for_test({}):
            pass
    found.close()
    assert done == []


def test_every_argument_of_a_cluster_may_be_given() -> None:
    arguments = dict.fromkeys(signature(EmbeddedCluster).parameters)
    assert validated(arguments) == arguments


def test_an_argument_that_a_cluster_does_not_have_is_named_before_one_is_made() -> None:
    with (
        pytest.raises(
            UsageError, match="marker rackspan: 'arack' shapes no cluster; there are racks, brokers, config, "
        ),
        Clusters(shared=False).for_test({"seed": 1, **{f"{letter}rack": 2 for letter in "hgfedcba"}}),
    ):
        pass
