"""The table of handlers."""

from typing import get_args, get_type_hints

import pytest

from rackspan.cluster.handlers import HANDLERS
from rackspan.wire.apis import SERVED, VERSIONS, ApiKey
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.schema import request_shape, response_shape


def test_every_api_that_is_served_has_a_handler() -> None:
    assert set(HANDLERS) == set(SERVED)


@pytest.mark.parametrize("key", SERVED)
def test_a_handler_takes_the_request_of_its_api_and_returns_the_response(key: ApiKey) -> None:
    """mypy cannot see this: the table's values are handlers of any request."""
    hints = get_type_hints(HANDLERS[key])
    version = VERSIONS[key][-1]
    assert get_args(hints["call"]) == (request_shape(key, version).values,)
    # Produce, Fetch and Metadata may respond later, or with bytes: their type is the union.
    assert hints["return"] is response_shape(key, version).values or WireStruct in get_args(hints["return"])
