"""The words of a page about a gateway's values: what it reads of the config topic and of brokers' metadata, on a clock of the page.

gateway override=1             a gateway that starts; the override of its file
value orders racks=2 id=1      a record of the config topic; `id` of the topic that it was set on
damaged orders                 a record that cannot be read
removed orders                 a tombstone
reported orders id=1           a broker's metadata
created orders id=2            the response to a CreateTopics
wait 60                        seconds
required orders                what acks=all then requires
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from rackspan.gateway.core.policies import Entry, FilePolicies, Policies, Scope, record
from rackspan.model import INT32_MAX


@dataclass
class Values:
    policies: Policies
    now: float = 0.0

    @classmethod
    def begun(cls, override: str | None = None) -> "Values":
        return cls(Policies(FilePolicies(override=None if override is None else int(override))))


def value(values: Values, topic: str, *, racks: str, id: str) -> Iterator[str]:  # noqa: A002 — the page's word
    values.policies.replay(*record(Scope.TOPIC, topic, Entry(int(racks), _id(id))))
    yield from required(values, topic)


def damaged(values: Values, topic: str) -> Iterator[str]:
    key, _ = record(Scope.TOPIC, topic, Entry(2, _id("1")))
    values.policies.replay(key, b'{"version": 99}')
    yield from required(values, topic)


def removed(values: Values, topic: str) -> Iterator[str]:
    values.policies.replay(*record(Scope.TOPIC, topic, None))
    yield from required(values, topic)


def reported(values: Values, topic: str, *, id: str) -> Iterator[str]:  # noqa: A002 — the page's word
    values.policies.record_topic(topic, _id(id), values.now)
    yield from required(values, topic)


def created(values: Values, topic: str, *, id: str) -> Iterator[str]:  # noqa: A002 — the page's word
    values.policies.record_created(topic, values.policies.entry_id(topic), _id(id), values.now)
    yield from required(values, topic)


def wait(values: Values, seconds: str) -> Iterator[str]:
    values.now += float(seconds)
    yield from ()


def required(values: Values, topic: str) -> Iterator[str]:
    policies = values.policies
    requirement = policies.requirement(topic, 1)
    racks = 1 if requirement is None else requirement.thresholds.min_insync_racks
    if racks == INT32_MAX:
        yield f"{topic}: acks=all is refused, since its record cannot be read"
    else:
        yield f"{topic}: acks=all needs {racks} {'rack' if racks == 1 else 'racks'}"


def _id(number: str) -> UUID:
    return UUID(int=int(number))


WORDS: Final[Mapping[str, Callable[..., Iterator[str]]]] = {
    "value": value,
    "damaged": damaged,
    "removed": removed,
    "reported": reported,
    "created": created,
    "wait": wait,
    "required": required,
}
