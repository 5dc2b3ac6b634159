"""The demo's clients before the embedded cluster, with ends that are planted never to return."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.demo import clients
from rackspan.demo.clients import DemoClients
from rackspan.producers import handles
from tests.waiting import eventually


def hang(*_: object) -> None:
    threading.Event().wait()


class HangingHandle:
    def __del__(self) -> None:
        threading.Event().wait()


class ClosedForEver(handles.Consumer):
    def close(self, *_: Any) -> None:
        hang()


class DestroyedForEver(handles.Producer):
    """What it holds is destroyed with it."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.held = HangingHandle()


@pytest.fixture
def orders() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=3, brokers=3, seed=5) as cluster:
        cluster.create_topic("orders", 1, 3)
        yield cluster


def ended(cluster: EmbeddedCluster) -> tuple[list[str], DemoClients]:
    """The lines of clients that were stopped once they had acknowledged and consumed a record."""
    lines: list[str] = []
    with DemoClients(cluster.bootstrap_servers, {"orders": 1}, lines.append) as started:
        eventually(lambda: started.acknowledged > 0 and started._tally.consumed.total() > 0, "a record is consumed")
        started.stop()
    return lines, started


def test_clients_that_end_say_nothing_and_every_record_is_reported(orders: EmbeddedCluster) -> None:
    lines, stopped = ended(orders)
    assert lines == []
    assert stopped._unreported == 0
    assert stopped.missing() == []


def test_a_consumer_that_never_closes_is_left_behind(orders: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handles, "Consumer", ClosedForEver)
    monkeypatch.setattr(clients, "END_SECONDS", 0.5)
    lines, _ = ended(orders)
    assert lines == ["the demo's consumer did not end in 0.5 s and is left behind"]


def test_a_producer_whose_destruction_never_returns_holds_up_nobody(
    orders: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handles, "Producer", DestroyedForEver)
    lines, _ = ended(orders)
    assert lines == []


def test_after_an_error_nothing_is_waited_for(orders: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handles, "Consumer", ClosedForEver)
    lines: list[str] = []
    with (
        pytest.raises(KeyboardInterrupt),
        DemoClients(orders.bootstrap_servers, {"orders": 1}, lines.append) as started,
    ):
        raise KeyboardInterrupt
    assert lines == []
    assert started._stop.is_set()
