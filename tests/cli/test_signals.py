"""Ctrl-C and SIGTERM, within a command and after it. What the command does not handle goes to the handlers of before."""

import signal
from collections.abc import Iterator

import pytest

from rackspan.cli.signals import ended_by_signals, stopped_by_signals

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture
def outside() -> Iterator[list[int]]:
    """The signals that no command has handled."""
    found: list[int] = []
    before = {number: signal.signal(number, lambda got, _frame: found.append(got)) for number in SIGNALS}
    yield found
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_a_command_that_runs_until_then(
    number: int, outside: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    went_on = False
    with ended_by_signals():
        signal.raise_signal(number)
        went_on = True
    assert not went_on
    assert capsys.readouterr().err == "ended\n"
    assert outside == []
    for again in SIGNALS:
        signal.raise_signal(again)
    assert outside == list(SIGNALS)


def test_a_command_that_ends_by_itself_says_nothing_and_an_error_passes(
    outside: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    with ended_by_signals():
        pass
    with pytest.raises(ZeroDivisionError), ended_by_signals():
        raise ZeroDivisionError
    assert capsys.readouterr().err == ""
    for number in SIGNALS:
        signal.raise_signal(number)
    assert outside == list(SIGNALS)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_requires_a_command_to_stop_and_the_second_one_is_not_its_own(
    number: int, outside: list[int]
) -> None:
    with stopped_by_signals() as stop:
        assert not stop.is_set()
        signal.raise_signal(number)
        assert stop.is_set()
        assert outside == []
        for again in SIGNALS:
            signal.raise_signal(again)
        assert outside == list(SIGNALS)


def test_after_a_command_that_was_not_stopped_signals_are_as_before(outside: list[int]) -> None:
    with pytest.raises(ZeroDivisionError), stopped_by_signals():
        raise ZeroDivisionError
    for number in SIGNALS:
        signal.raise_signal(number)
    assert outside == list(SIGNALS)
