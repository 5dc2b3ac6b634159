"""What a behaviour is, and the list of them all.

A behaviour is a function of the subject that returns what it saw: error codes, offsets, states, plain values that JSON
can hold, without names, ports or messages. One about a lost broker is a generator with two stops: it yields before
broker 3 is lost and before it is restored, so that all of them share one loss.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from tests.conformance.subject import Subject

Outcome: TypeAlias = Any
Acts: TypeAlias = Generator[None, None, Outcome]


@dataclass(frozen=True)
class Behaviour:
    """One sentence about a Kafka cluster, by area."""

    area: str
    sentence: str
    look: Callable[[Subject], Outcome]
    loses_a_broker: bool = False

    @property
    def name(self) -> str:
        return f"{self.area}: {self.sentence}"


BEHAVIOURS: Final[dict[str, Behaviour]] = {}


def behaviour(area: str) -> Callable[[Callable[[Subject], Outcome]], Callable[[Subject], Outcome]]:
    """Add a function to the list; its name is the sentence."""
    return _adder(area, loses_a_broker=False)


def behaviour_in_loss(area: str) -> Callable[[Callable[[Subject], Acts]], Callable[[Subject], Acts]]:
    """Add one that goes on while broker 3 is lost, and again when it is back."""
    return _adder(area, loses_a_broker=True)


def _adder(area: str, loses_a_broker: bool) -> Callable[[Any], Any]:
    def add(look: Callable[[Subject], Any]) -> Callable[[Subject], Any]:
        one = Behaviour(area, look.__name__.replace("_", " "), look, loses_a_broker)
        assert one.name not in BEHAVIOURS, one.name
        BEHAVIOURS[one.name] = one
        return look

    return add


def through_a_loss(subject: Subject) -> dict[str, Outcome]:
    """Every behaviour about a lost broker, through one loss. An exception stands for the outcome of its own alone."""
    running: dict[str, Acts] = {one.name: one.look(subject) for one in BEHAVIOURS.values() if one.loses_a_broker}
    outcomes: dict[str, Outcome] = {}
    _advance(running, outcomes)
    subject.lose()
    try:
        _advance(running, outcomes)
    finally:
        subject.restore()
    _advance(running, outcomes)
    assert not running, f"more than two stops: {', '.join(running)}"
    return outcomes


def _advance(running: dict[str, Acts], outcomes: dict[str, Outcome]) -> None:
    for name, acts in list(running.items()):
        try:
            next(acts)
            continue
        except StopIteration as end:
            outcomes[name] = end.value
        except Exception as error:
            outcomes[name] = error
        del running[name]
