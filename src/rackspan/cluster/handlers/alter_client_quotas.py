"""AlterClientQuotas (key 49), versions 0-1: sets and removes quotas of users, client ids and IP addresses (KIP-546)."""

from rackspan.cluster.context import Call
from rackspan.cluster.core.admin_messages import AdminResponse, AlterClientQuotas, QuotaAlteration
from rackspan.cluster.core.metadata import QuotaEntity
from rackspan.cluster.handlers.common import ADMIN_TIMEOUT_MS, timeout_responses
from rackspan.wire.messages.quotas import (
    AlterClientQuotasRequestData,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponseData,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)


async def handle(call: Call[AlterClientQuotasRequestData]) -> AlterClientQuotasResponseData:
    request = call.request
    alterations = tuple(map(_alteration, request.entries))
    responses = await call.broker.requests.controller_response(
        lambda correlation_id: AlterClientQuotas(correlation_id, alterations, request.validate_only),
        ADMIN_TIMEOUT_MS,
        timeout_responses((frozenset(alteration.entity) for alteration in alterations), AdminResponse),
    )
    if not request.validate_only:
        await call.broker.metadata_updates.wait_until_caught_up(ADMIN_TIMEOUT_MS)
    return AlterClientQuotasResponseData(
        entries=[
            AlterClientQuotasResponseEntryData(
                error_code=response.error, error_message=response.message, entity=_entity(response.key)
            )
            for response in responses
        ]
    )


def _alteration(entry: AlterClientQuotasRequestEntryData) -> QuotaAlteration:
    entity = tuple((component.entity_type, component.entity_name) for component in entry.entity)
    return QuotaAlteration(entity, tuple((op.key, None if op.remove else op.value) for op in entry.ops))


def _entity(entity: QuotaEntity) -> list[AlterClientQuotasResponseEntityData]:
    return [
        AlterClientQuotasResponseEntityData(entity_type=kind, entity_name=name)
        for kind, name in sorted(dict(entity).items())
    ]
