"""SCRAM credentials of users, in the order and the words of KIP-554."""

import pytest

from rackspan.cluster.core.admin_messages import AdminResponse, AlterScramCredentials, ScramDeletion, ScramUpsertion
from rackspan.cluster.core.controller.admin.scram_credentials import MAX_ITERATIONS, MIN_ITERATIONS
from rackspan.kafka_bytes.error_codes import ErrorCode
from tests.cluster.world import World


def world() -> World:
    made = World({1: "a"})
    made.run(500)
    return made


def altered(w: World, *changes: ScramDeletion | ScramUpsertion) -> list[AdminResponse]:
    return list(w.admin(lambda correlation_id: AlterScramCredentials(correlation_id, changes)))


def test_a_credential_is_set_replaced_and_removed() -> None:
    w = world()
    accepted = [AdminResponse("ann", ErrorCode.NONE)]
    assert altered(w, ScramUpsertion("ann", 1, MIN_ITERATIONS)) == accepted
    assert altered(w, ScramUpsertion("ann", 2, MAX_ITERATIONS)) == accepted
    assert w.controller.image.scram_iterations == {("ann", 1): MIN_ITERATIONS, ("ann", 2): MAX_ITERATIONS}
    assert altered(w, ScramUpsertion("ann", 1, 5_000)) == accepted
    assert altered(w, ScramDeletion("ann", 2)) == accepted
    assert w.controller.image.scram_iterations == {("ann", 1): 5_000}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (ScramUpsertion("", 1, 5_000), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (ScramUpsertion("ann", 0, 5_000), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (ScramUpsertion("ann", 3, 5_000), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (ScramUpsertion("ann", 1, 4_095), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (ScramUpsertion("ann", 1, 16_385), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (ScramUpsertion("ann", 1, 5_000, False), ErrorCode.UNKNOWN_SERVER_ERROR, "The salted password is empty"),
        (
            ScramDeletion("ann", 1),
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        ),
    ],
)
def test_what_is_wrong_is_refused_user_by_user(
    change: ScramDeletion | ScramUpsertion, error: ErrorCode, message: str
) -> None:
    w = world()
    assert altered(w, change, ScramUpsertion("bob", 1, 5_000)) == [
        AdminResponse("bob", ErrorCode.NONE),
        AdminResponse(change.user, error, message),
    ]
    assert w.controller.image.scram_iterations == {("bob", 1): 5_000}


def test_a_user_whose_credential_is_altered_twice_keeps_it() -> None:
    w = world()
    altered(w, ScramUpsertion("ann", 1, 5_000))
    (response,) = altered(w, ScramDeletion("ann", 1), ScramUpsertion("ann", 1, 6_000), ScramUpsertion("ann", 2, 6_000))
    message = "A user credential cannot be altered twice in the same request"
    assert response == AdminResponse("ann", ErrorCode.DUPLICATE_RESOURCE, message)
    assert w.controller.image.scram_iterations == {("ann", 1): 5_000}
