"""IncrementalAlterConfigs (key 44), versions 0-1: sets, deletes, appends to and subtracts from single keys (KIP-339)."""

from collections.abc import Coroutine
from typing import Any

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.messages import AlterResource, ConfigOp
from rackspan.cluster.handlers.common.config_changes import alter


def handle(call: Call) -> Coroutine[Any, Any, Body]:
    return alter(call, [_resource(one) for one in call.body["resources"]], replace=False)


def _resource(one: dict[str, Any]) -> AlterResource:
    ops = tuple(ConfigOp(config["name"], config["config_operation"], config["value"]) for config in one["configs"])
    return AlterResource(one["resource_type"], one["resource_name"], ops)
