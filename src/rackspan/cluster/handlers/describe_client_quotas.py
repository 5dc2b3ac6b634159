"""DescribeClientQuotas (key 48), versions 0-1: the quotas of the entities that match a filter (KIP-546)."""

from collections.abc import Mapping, Sequence
from typing import Final

from rackspan.cluster.context import Call
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.messages.quotas import (
    ComponentData,
    DescribeClientQuotasRequestData,
    DescribeClientQuotasResponseData,
    DescribeClientQuotasResponseEntityData,
    DescribeClientQuotasResponseEntryData,
    ValueData,
)

EXACT, DEFAULT, SPECIFIED = range(3)
"""The match types: this name, the default of the type, any name of the type."""

_TYPES: Final = ("user", "client-id", "ip")
_MATCH_WORDS: Final = {DEFAULT: "DEFAULT", SPECIFIED: "SPECIFIED"}


def handle(call: Call[DescribeClientQuotasRequestData]) -> DescribeClientQuotasResponseData:
    components, strict = call.request.components, call.request.strict
    error, message = _filter_error(components)
    if error is not ErrorCode.NONE:
        return DescribeClientQuotasResponseData(error_code=error, error_message=message)
    entities = [(dict(entity), quotas) for entity, quotas in call.broker.image.client_quotas.items()]
    entities.sort(key=lambda entity: [(kind, name or "") for kind, name in sorted(entity[0].items())])
    return DescribeClientQuotasResponseData(
        error_message="",
        entries=[_entry(names, quotas) for names, quotas in entities if _matches(names, components, strict)],
    )


def _filter_error(components: Sequence[ComponentData]) -> tuple[ErrorCode, str]:
    """In the order and words of Kafka's ClientQuotasImage."""
    invalid = ErrorCode.INVALID_REQUEST
    types: list[str] = []
    for component in components:
        kind, match_type = component.entity_type, component.match_type
        if not kind:
            return invalid, "Invalid empty entity type."
        if kind in types:
            return invalid, f"Entity type {kind} cannot appear more than once in the filter."
        if kind not in _TYPES:
            return ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}"
        if match_type not in (EXACT, DEFAULT, SPECIFIED):
            return invalid, f"Unknown match type {match_type}"
        if match_type == EXACT and component.match is None:
            return invalid, "Request specified MATCH_TYPE_EXACT, but set match string to null."
        if match_type != EXACT and component.match is not None:
            words = _MATCH_WORDS[match_type]
            return invalid, f"Request specified MATCH_TYPE_{words}, but also specified a match string."
        types.append(kind)
    if "ip" in types and len(types) > 1:
        return invalid, (
            "Invalid entity filter component combination. IP filter component should not be used with user or "
            "clientId filter component."
        )
    return ErrorCode.NONE, ""


def _matches(names: Mapping[str, str | None], components: Sequence[ComponentData], strict: bool) -> bool:
    """`strict`: the entity has no type beside those of the filter."""
    if strict and len(names) != len(components):
        return False
    return all(
        component.entity_type in names
        and (component.match_type == SPECIFIED or names[component.entity_type] == component.match)
        for component in components
    )


def _entry(names: Mapping[str, str | None], quotas: Mapping[str, float]) -> DescribeClientQuotasResponseEntryData:
    return DescribeClientQuotasResponseEntryData(
        entity=[
            DescribeClientQuotasResponseEntityData(entity_type=kind, entity_name=name)
            for kind, name in sorted(names.items())
        ],
        values=[ValueData(key=key, value=value) for key, value in sorted(quotas.items())],
    )
