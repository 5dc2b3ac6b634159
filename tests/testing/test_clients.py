"""Clients of tests whose close is planted never to return."""

import threading

import pytest

from rackspan.testing import closing


class Consumer:
    def __init__(self, closed: threading.Event) -> None:
        self.closed = closed

    def close(self) -> None:
        self.closed.wait()


def test_a_client_that_closes_is_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    closed = threading.Event()
    closed.set()
    with closing(Consumer(closed)) as consumer:
        assert consumer.closed is closed
    assert list(recwarn) == []


def test_a_close_that_never_returns_is_a_warning_of_the_test() -> None:
    with (
        pytest.warns(UserWarning, match=r"^Consumer did not end in 0\.05 s and is left behind$"),
        closing(Consumer(threading.Event()), seconds=0.05),
    ):
        pass
