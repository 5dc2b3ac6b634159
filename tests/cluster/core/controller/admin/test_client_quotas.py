"""Client quotas, in the words of KIP-546."""

import pytest

from rackspan.cluster.core.admin_messages import AdminResponse, AlterClientQuotas, QuotaAlteration
from rackspan.cluster.core.controller.admin.client_quotas import NOT_ENFORCED
from rackspan.cluster.core.messages import Warned
from rackspan.kafka_bytes.error_codes import ErrorCode
from tests.cluster.world import World

ANN = (("user", "ann"),)


def world() -> World:
    made = World({1: "a"})
    made.run(500)
    return made


def altered(w: World, *alterations: QuotaAlteration, validate_only: bool = False) -> list[AdminResponse]:
    return list(w.admin(lambda correlation_id: AlterClientQuotas(correlation_id, alterations, validate_only)))


def quotas(w: World) -> dict[frozenset[tuple[str, str | None]], dict[str, float]]:
    return {entity: dict(values) for entity, values in w.controller.image.client_quotas.items()}


def test_quotas_are_set_changed_and_removed_key_by_key() -> None:
    w = world()
    rates = QuotaAlteration(ANN, (("producer_byte_rate", 1_000.0), ("request_percentage", 12.5)))
    (response,) = altered(w, rates)
    assert response == AdminResponse(frozenset(ANN), ErrorCode.NONE)
    assert quotas(w) == {frozenset(ANN): {"producer_byte_rate": 1_000.0, "request_percentage": 12.5}}
    altered(w, QuotaAlteration(ANN, (("producer_byte_rate", None), ("request_percentage", 50.0))))
    assert quotas(w) == {frozenset(ANN): {"request_percentage": 50.0}}
    altered(w, QuotaAlteration(ANN, (("request_percentage", None),)))
    assert quotas(w) == {}


def test_an_address_or_every_address_has_a_rate_of_connections() -> None:
    w = world()
    for name in ("10.0.0.1", "::1", None):
        altered(w, QuotaAlteration((("ip", name),), (("connection_creation_rate", 10.0),)))
    assert len(quotas(w)) == 3


def test_a_validation_changes_nothing() -> None:
    w = world()
    (response,) = altered(w, QuotaAlteration(ANN, (("producer_byte_rate", 1.0),)), validate_only=True)
    assert response.error is ErrorCode.NONE
    assert quotas(w) == {}


def test_a_quota_that_is_set_is_warned_of_once() -> None:
    w = world()
    altered(w, QuotaAlteration(ANN, (("producer_byte_rate", None),)))
    assert warnings(w) == 0
    for rate in (1.0, 2.0):
        altered(w, QuotaAlteration(ANN, (("producer_byte_rate", rate),)))
    assert warnings(w) == 1


def warnings(w: World) -> int:
    return sum(isinstance(effect, Warned) and effect.message == NOT_ENFORCED for _, effect in w.effects)


@pytest.mark.parametrize(
    ("entity", "key", "value", "message"),
    [
        ((), "producer_byte_rate", 1.0, "Invalid empty client quota entity"),
        ((("group", "g"),), "producer_byte_rate", 1.0, "Unhandled client quota entity type: group"),
        ((("user", ""),), "producer_byte_rate", 1.0, "Empty user not supported"),
        (
            (("user", "ann"), ("ip", "10.0.0.1")),
            "connection_creation_rate",
            1.0,
            "Invalid quota entity combination, IP entity should not be combined with User or ClientId",
        ),
        ((("ip", "nowhere"),), "connection_creation_rate", 1.0, "nowhere is not a valid IP or resolvable host."),
        ((("ip", None),), "producer_byte_rate", 1.0, "Invalid configuration key producer_byte_rate"),
        (ANN, "connection_creation_rate", 1.0, "Invalid configuration key connection_creation_rate"),
        (ANN, "producer_byte_rate", 0.0, "Quota producer_byte_rate must be greater than 0"),
        (ANN, "request_percentage", float("nan"), "Quota request_percentage must be greater than 0"),
        (ANN, "consumer_byte_rate", 1.5, "consumer_byte_rate cannot be a fractional value."),
        (ANN, "consumer_byte_rate", 1e19, "Proposed value for consumer_byte_rate is too large for a LONG."),
        (
            (("ip", None),),
            "connection_creation_rate",
            2.0**31,
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
    ],
)
def test_what_is_wrong_is_refused_entity_by_entity(
    entity: tuple[tuple[str, str | None], ...], key: str, value: float, message: str
) -> None:
    w = world()
    sound = QuotaAlteration((("client-id", "c"),), (("producer_byte_rate", 7.0),))
    refused, accepted = altered(w, QuotaAlteration(entity, ((key, value),)), sound)
    assert (refused.error, refused.message) == (ErrorCode.INVALID_REQUEST, message)
    assert accepted.error is ErrorCode.NONE
    assert quotas(w) == {frozenset({("client-id", "c")}): {"producer_byte_rate": 7.0}}


def test_an_entity_that_is_listed_twice_is_refused() -> None:
    w = world()
    one = QuotaAlteration(ANN, (("producer_byte_rate", 1.0),))
    (response,) = altered(w, one, one)
    assert (response.error, response.message) == (
        ErrorCode.INVALID_REQUEST,
        "Ignoring duplicate entity ClientQuotaEntity(entries={user=ann})",
    )
    twice = QuotaAlteration(ANN, (("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)))
    assert altered(w, twice)[0].error is ErrorCode.INVALID_REQUEST
