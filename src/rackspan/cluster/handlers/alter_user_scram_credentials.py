"""AlterUserScramCredentials (key 51), version 0: adds, replaces and removes the SCRAM credentials of users (KIP-554)."""

from rackspan.cluster.context import Call
from rackspan.cluster.core.admin_messages import AdminResponse, AlterScramCredentials, ScramDeletion, ScramUpsertion
from rackspan.cluster.handlers.common import ADMIN_TIMEOUT_MS, timeout_responses
from rackspan.wire.messages.scram_credentials import (
    AlterUserScramCredentialsRequestData,
    AlterUserScramCredentialsResponseData,
    AlterUserScramCredentialsResult,
)


async def handle(call: Call[AlterUserScramCredentialsRequestData]) -> AlterUserScramCredentialsResponseData:
    deletions = tuple(ScramDeletion(deletion.name, deletion.mechanism) for deletion in call.request.deletions)
    upsertions = tuple(
        ScramUpsertion(upsertion.name, upsertion.mechanism, upsertion.iterations, bool(upsertion.salted_password))
        for upsertion in call.request.upsertions
    )
    changes = deletions + upsertions
    responses = await call.broker.requests.controller_response(
        lambda correlation_id: AlterScramCredentials(correlation_id, changes),
        ADMIN_TIMEOUT_MS,
        timeout_responses(dict.fromkeys(change.user for change in changes), AdminResponse),
    )
    await call.broker.metadata_updates.wait_until_caught_up(ADMIN_TIMEOUT_MS)
    return AlterUserScramCredentialsResponseData(
        results=[
            AlterUserScramCredentialsResult(
                user=response.key, error_code=response.error, error_message=response.message
            )
            for response in responses
        ]
    )
