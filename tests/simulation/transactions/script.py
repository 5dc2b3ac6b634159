"""Runs a client: a generator that yields what it waits for, and is resumed with the response or when the time is over."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from random import Random
from typing import Any, Final, TypeAlias

from rackspan.model.ids import BrokerId, TopicPartition
from tests.simulation.environment.clock import Clock

REQUEST_MS: Final = 350
NO_LEADER_MS: Final = 40


@dataclass(frozen=True, slots=True)
class RequestStep:
    """Send `request` to the leader of `partition`, or to `broker`; resumed with the response, or None after REQUEST_MS."""

    partition: TopicPartition
    request: object
    broker: BrokerId | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Resumed with None after so long."""

    ms: int


Step: TypeAlias = RequestStep | Wait
Steps: TypeAlias = Generator[Step, Any, None]


@dataclass(slots=True)
class Script:
    """One client under way. Each step has a number, so that a late response finds that it is late.

    `send` sends a request and calls back with the response, perhaps never; it returns False where no leader is known.
    """

    clock: Clock
    rng: Random
    steps: Steps
    send: Callable[[RequestStep, Callable[[object], None]], bool]
    number: int = 0
    paused_until: int = 0

    def resume(self, value: object = None) -> None:
        """Go on to the next step."""
        try:
            step = self.steps.send(value)
        except StopIteration:
            self.number = -1
            return
        self.number += 1
        if isinstance(step, Wait):
            self._resume_after(step.ms)
        elif self._send(step):
            self._resume_after(REQUEST_MS)
        else:
            self._resume_after(NO_LEADER_MS)

    def _send(self, step: RequestStep) -> bool:
        number = self.number
        return self.send(step, lambda response: self._at(number, response))

    def _resume_after(self, ms: int) -> None:
        number = self.number
        self.clock.after(ms, lambda: self._at(number, None))

    def _at(self, number: int, value: object) -> None:
        """Resume step `number`, if it is still the one under way, once the client is awake."""
        if self.number != number:
            return
        if self.paused_until > self.clock.now:
            self.clock.at(self.paused_until, lambda: self._at(number, value))
        else:
            self.resume(value)

    def pause(self, ms: int) -> None:
        """As a long garbage collection: nothing is read and no timer fires."""
        self.paused_until = max(self.paused_until, self.clock.now + ms)
