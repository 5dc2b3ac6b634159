"""AlterConfigs (key 33), versions 0-2: what is not named is taken away. Deprecated by Kafka, spoken by old tools."""

from collections.abc import Coroutine
from typing import Any

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.messages import AlterResource, ConfigOp
from rackspan.cluster.handlers.common.config_changes import alter

SET = 0


def handle(call: Call) -> Coroutine[Any, Any, Body]:
    return alter(call, [_resource(one) for one in call.body["resources"]], replace=True)


def _resource(one: dict[str, Any]) -> AlterResource:
    ops = tuple(ConfigOp(config["name"], SET, config["value"]) for config in one["configs"])
    return AlterResource(one["resource_type"], one["resource_name"], ops)
