"""AlterUserScramCredentials: validated user by user (KIP-554; Kafka's ScramControlManager).

The credentials are listed by DescribeUserScramCredentials. No listener of this cluster takes logins, so nothing uses them.
"""

from typing import Final

from rackspan.cluster.core.admin_messages import AdminResponse, AlterScramCredentials, ScramDeletion, ScramUpsertion
from rackspan.cluster.core.controller.context import ControllerContext
from rackspan.cluster.core.controller.refusals import Refused
from rackspan.cluster.core.messages import Effect, Respond
from rackspan.cluster.core.metadata import MetadataImage, ScramCredentialSet
from rackspan.kafka_bytes.error_codes import ErrorCode

SCRAM_MECHANISMS: Final = (1, 2)
"""SCRAM-SHA-256 and SCRAM-SHA-512."""

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384


def alter_scram_credentials(context: ControllerContext, _now: int, message: AlterScramCredentials) -> list[Effect]:
    accepted: dict[str, ScramCredentialSet] = {}
    refused: dict[str, Refused] = {}
    for change in message.changes:
        if change.user in refused:
            continue
        try:
            if accepted.pop(change.user, None) is not None:
                raise Refused(
                    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
                )
            accepted[change.user] = _record(context.image, change)
        except Refused as refusal:
            refused[change.user] = refusal
    context.write_all(accepted.values())
    responses = [AdminResponse(user, ErrorCode.NONE) for user in accepted]
    responses += [AdminResponse(user, refusal.error, refusal.message) for user, refusal in refused.items()]
    return [Respond(message.correlation_id, tuple(responses))]


def _record(image: MetadataImage, change: ScramDeletion | ScramUpsertion) -> ScramCredentialSet:
    if not change.user:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in SCRAM_MECHANISMS:
        raise Refused(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, ScramDeletion):
        if (change.user, change.mechanism) not in image.scram_iterations:
            raise Refused(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
        return ScramCredentialSet(change.user, change.mechanism, None)
    if change.iterations < MIN_ITERATIONS:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > MAX_ITERATIONS:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if not change.has_password:
        # Kafka derives keys from it, which fails there too.
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "The salted password is empty")
    return ScramCredentialSet(change.user, change.mechanism, change.iterations)
