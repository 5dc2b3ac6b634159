"""What a behaviour is, and the list of them all.

A behaviour is a function of the subject that returns what it saw: error codes, offsets, states, plain values that JSON
can hold, without names, ports or messages. One about a lost broker is a generator with two stops: it yields before
broker 3 is lost and before it is restored, so that all of them share one loss.
"""

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
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
    alone: bool = False
    """It changes what holds for the whole cluster, and is looked at while nothing else is."""

    @property
    def name(self) -> str:
        return f"{self.area}: {self.sentence}"


BEHAVIOURS: Final[dict[str, Behaviour]] = {}

_SIDE_BY_SIDE: Final = 8
"""Behaviours at once. Each waits for the cluster most of its time, and has topics, groups and names of its own."""


def behaviour(
    area: str, *, alone: bool = False
) -> Callable[[Callable[[Subject], Outcome]], Callable[[Subject], Outcome]]:
    """Add a function to the list; its name is the sentence."""
    return _adder(area, loses_a_broker=False, alone=alone)


def behaviour_in_loss(area: str) -> Callable[[Callable[[Subject], Acts]], Callable[[Subject], Acts]]:
    """Add one that goes on while broker 3 is lost, and again when it is back."""
    return _adder(area, loses_a_broker=True, alone=False)


def _adder(area: str, *, loses_a_broker: bool, alone: bool) -> Callable[[Any], Any]:
    def add(look: Callable[[Subject], Any]) -> Callable[[Subject], Any]:
        one = Behaviour(area, look.__name__.replace("_", " "), look, loses_a_broker, alone)
        assert one.name not in BEHAVIOURS, one.name
        BEHAVIOURS[one.name] = one
        return look

    return add


def looked_at(subject: Subject, wanted: Iterable[str]) -> dict[str, Outcome]:
    """Some behaviours by name, side by side but for those `alone`. An exception stands for the outcome of its own alone."""
    chosen = [BEHAVIOURS[name] for name in wanted]
    outcomes = {one.name: _tried(one.look, subject) for one in chosen if one.alone}
    beside = [one for one in chosen if not one.alone and not one.loses_a_broker]
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        observed = pool.map(lambda one: _tried(one.look, subject), beside)
        outcomes |= dict(zip((one.name for one in beside), observed, strict=True))
    losing = [one.name for one in chosen if one.loses_a_broker]
    return outcomes | (through_a_loss(subject, losing) if losing else {})


def through_a_loss(subject: Subject, wanted: Iterable[str] | None = None) -> dict[str, Outcome]:
    """Behaviours about a lost broker, all by default, through one loss, side by side."""
    names = [name for name, one in BEHAVIOURS.items() if one.loses_a_broker] if wanted is None else wanted
    running: dict[str, Acts] = {name: BEHAVIOURS[name].look(subject) for name in names}
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
    """Each to its next stop. Who returns or raises is done."""
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        ends = dict(zip(running, pool.map(_end, running.values()), strict=True))
    for name, end in ends.items():
        if end is not None:
            outcomes[name] = end.value if isinstance(end, StopIteration) else end
            del running[name]


def _end(acts: Acts) -> Exception | None:
    try:
        next(acts)
    except Exception as end:
        return end
    return None


def _tried(look: Callable[[Subject], Outcome], subject: Subject) -> Outcome:
    try:
        return look(subject)
    except Exception as error:
        return error
