"""The response to an administrative request when the controller's own response is late."""

from collections.abc import Iterable
from typing import Final, TypeVar

from rackspan.cluster.core.messages import AdminResponse
from rackspan.kafka_bytes.error_codes import ErrorCode

ADMIN_TIMEOUT_MS: Final = 30_000
"""For requests that have no timeout of their own."""

AdminResponseT = TypeVar("AdminResponseT", bound=AdminResponse)


def timeout_responses(keys: Iterable[object], response: type[AdminResponseT]) -> tuple[AdminResponseT, ...]:
    """REQUEST_TIMED_OUT for every item of the request."""
    message = "the controller did not answer in time; what became of the request is not known"
    return tuple(response(key, ErrorCode.REQUEST_TIMED_OUT, message) for key in keys)
