"""AlterClientQuotas: validated entity by entity (KIP-546; Kafka's ClientQuotaControlManager).

Quotas are listed by DescribeClientQuotas. This cluster delays no client, which a warning says when one is set.
"""

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Final

from rackspan.cluster.core.admin_messages import AdminResponse, AlterClientQuotas, QuotaAlteration
from rackspan.cluster.core.controller.context import ControllerContext
from rackspan.cluster.core.controller.refusals import Refused
from rackspan.cluster.core.messages import Effect, Respond
from rackspan.cluster.core.metadata import ClientQuotaSet, QuotaEntity
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import INT32_MAX, INT64_MAX

USER, CLIENT_ID, IP = "user", "client-id", "ip"

NOT_ENFORCED: Final = "client quotas are kept and described; this cluster delays no client"

_INTEGER_LIMITS: Final[Mapping[str, tuple[str, int]]] = {
    "producer_byte_rate": ("a LONG", INT64_MAX),
    "consumer_byte_rate": ("a LONG", INT64_MAX),
    "connection_creation_rate": ("an INT", INT32_MAX),
}
"""Type and largest value of the keys that are not floating-point (QuotaConfig)."""

_CLIENT_KEYS: Final = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
_IP_KEYS: Final = ("connection_creation_rate",)
_FRACTION: Final = 1e-6


def alter_client_quotas(context: ControllerContext, _now: int, message: AlterClientQuotas) -> list[Effect]:
    responses: dict[QuotaEntity, AdminResponse] = {}
    for alteration in message.alterations:
        # Of two names for one type the last counts, as in Kafka's map.
        entity = frozenset(dict(alteration.entity).items())
        try:
            records = list(_records(context, entity, alteration, entity in responses))
        except Refused as refused:
            responses[entity] = AdminResponse(entity, refused.error, refused.message)
            continue
        responses[entity] = AdminResponse(entity, ErrorCode.NONE)
        if not message.validate_only:
            context.write_all(records)
            if any(record.value is not None for record in records):
                context.warn_once(NOT_ENFORCED)
    return [Respond(message.correlation_id, tuple(responses.values()))]


def _records(
    context: ControllerContext, entity: QuotaEntity, alteration: QuotaAlteration, is_repeated: bool
) -> Iterator[ClientQuotaSet]:
    values = dict(alteration.values)
    if is_repeated or len(values) < len(alteration.values):
        words = ", ".join(f"{kind}={name}" for kind, name in sorted(dict(entity).items()))
        raise _invalid(f"Ignoring duplicate entity ClientQuotaEntity(entries={{{words}}})")
    keys = _valid_keys(dict(entity))
    before = context.image.client_quotas.get(entity, {})
    for key, value in values.items():
        if value is not None:
            _check(key, value, keys)
        if value != before.get(key):
            yield ClientQuotaSet(entity, key, value)


def _valid_keys(names: Mapping[str, str | None]) -> tuple[str, ...]:
    """The keys that may be set for the entity. Errors: Refused for a combination of types that is no entity."""
    for kind, name in names.items():
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    if not names:
        raise _invalid("Invalid empty client quota entity")
    if IP not in names:
        return _CLIENT_KEYS
    if len(names) > 1:
        raise _invalid("Invalid quota entity combination, IP entity should not be combined with User or ClientId")
    _check_address(names[IP])
    return _IP_KEYS


def _check_address(name: str | None) -> None:
    """Kafka also takes host names that it can resolve; the controller here resolves none."""
    try:
        if name is not None:
            ip_address(name)
    except ValueError:
        raise _invalid(f"{name} is not a valid IP or resolvable host.") from None


def _check(key: str, value: float, keys: tuple[str, ...]) -> None:
    if key not in keys:
        raise _invalid(f"Invalid configuration key {key}")
    # Written so that NaN is refused too.
    if not value > 0:
        raise _invalid(f"Quota {key} must be greater than 0")
    if key in _INTEGER_LIMITS:
        type_name, largest = _INTEGER_LIMITS[key]
        if value > largest:
            raise _invalid(f"Proposed value for {key} is too large for {type_name}.")
        if value % 1.0 > _FRACTION:
            raise _invalid(f"{key} cannot be a fractional value.")


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)
