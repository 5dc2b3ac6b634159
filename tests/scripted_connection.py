"""A connection to a cluster whose responses a test writes down, by API, in place of ClusterConnection."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.groups import ListGroupsResponseData, ListGroupsResponseListedGroup
from rackspan.wire.messages.metadata import MetadataResponseBroker, MetadataResponseData

Respond: TypeAlias = Callable[[Any, int | None], "WireStruct | Exception"]
"""From a request and the broker it is sent to, None for any. An exception is raised."""

BROKERS = MetadataResponseData(brokers=[MetadataResponseBroker(node_id=broker) for broker in (1, 2)])


class ScriptedConnection:
    """Each request takes `seconds_each` of the deadline. Called as the class that it stands for, it returns itself."""

    def __init__(self, script: Mapping[ApiKey, Respond], seconds_each: float = 0.0) -> None:
        self.script: dict[ApiKey, Respond] = {ApiKey.METADATA: lambda *_: BROKERS, **script}
        self.requests: list[tuple[ApiKey, int | None]] = []
        self.most: list[int | None] = []
        """The last version that each request may have."""
        self.settings: list[Any] = []
        self.remaining_seconds = 30.0
        self.closed = 0
        self._seconds_each = seconds_each

    def __call__(self, settings: Any) -> "ScriptedConnection":
        self.settings.append(settings)
        return self

    def __enter__(self) -> "ScriptedConnection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.closed += 1

    def renew_deadline(self) -> None:
        self.remaining_seconds = 30.0

    def run(self, coroutine: Callable[..., Awaitable[Any]], *arguments: object) -> Any:
        async def ended() -> Any:
            return await coroutine(*arguments)

        return asyncio.run(ended())

    def submit(self, coroutine: Callable[..., Awaitable[Any]], *arguments: object) -> Callable[[], Any]:
        return lambda: self.run(coroutine, *arguments)

    async def call(
        self,
        api_key: ApiKey,
        request: WireStruct,
        _seconds: float | None = None,
        *,
        broker: int | None = None,
        most: int | None = None,
        **_: Any,
    ) -> Any:
        self.requests.append((api_key, broker))
        self.most.append(most)
        self.remaining_seconds -= self._seconds_each
        response = self.script[api_key](request, broker)
        if isinstance(response, Exception):
            raise response
        return response


def listing(groups: Mapping[int, Mapping[str, tuple[str, str]]]) -> Respond:
    """ListGroups: by broker, each group's type and protocol type by its id."""

    def respond(_: Any, broker: int | None) -> ListGroupsResponseData:
        return ListGroupsResponseData(
            groups=[
                ListGroupsResponseListedGroup(group_id=group, group_type=kind, protocol_type=protocol)
                for group, (kind, protocol) in groups.get(broker or 0, {}).items()
            ]
        )

    return respond
