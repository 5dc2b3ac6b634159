"""DescribeClientQuotas: entities in the order of their names, whatever order they are kept in."""

from types import SimpleNamespace
from typing import Any

from rackspan.cluster.context import Call
from rackspan.cluster.handlers.describe_client_quotas import handle
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import RequestHeader
from rackspan.wire.messages.quotas import DescribeClientQuotasRequestData


def test_entities_are_described_by_the_order_of_types_and_names_the_default_of_a_type_first() -> None:
    """Of two users each with a client id, the client id counts before the user."""
    kept = [
        (("user", "bob"),),
        (("user", "alice"), ("client-id", "y")),
        (("user", "bob"), ("client-id", "x")),
        (("user", None), ("client-id", None)),
        (("user", None),),
        (("ip", "192.0.2.1"),),
        (("client-id", "y"),),
    ]
    image = SimpleNamespace(client_quotas={entity: {"request_percentage": 7.0} for entity in kept})
    broker: Any = SimpleNamespace(image=image)
    header = RequestHeader(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, 1, None, 0)
    response = handle(Call(header, DescribeClientQuotasRequestData(), broker, ""))
    assert [[(part.entity_type, part.entity_name) for part in entry.entity] for entry in response.entries or ()] == [
        [("client-id", None), ("user", None)],
        [("client-id", "x"), ("user", "bob")],
        [("client-id", "y")],
        [("client-id", "y"), ("user", "alice")],
        [("ip", "192.0.2.1")],
        [("user", None)],
        [("user", "bob")],
    ]
