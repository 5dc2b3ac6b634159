"""What is said of every item when the controller did not answer in time."""

from collections.abc import Iterable
from typing import TypeVar

from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.messages import AdminResponse

Result = TypeVar("Result", bound=AdminResponse)


def timed_out(keys: Iterable[object], kind: type[Result]) -> tuple[Result, ...]:
    message = "the controller did not answer in time; what became of the request is not known"
    return tuple(kind(key, KafkaError.REQUEST_TIMED_OUT, message) for key in keys)
