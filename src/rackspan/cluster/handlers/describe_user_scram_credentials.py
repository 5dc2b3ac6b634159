"""DescribeUserScramCredentials (key 50), version 0: the mechanisms and iterations of users, all by default (KIP-554)."""

from collections import Counter

from rackspan.cluster.context import Call
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.messages.scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequestData,
    DescribeUserScramCredentialsResponseData,
    DescribeUserScramCredentialsResult,
)


def handle(call: Call[DescribeUserScramCredentialsRequestData]) -> DescribeUserScramCredentialsResponseData:
    credentials: dict[str, list[CredentialInfo]] = {}
    for (user, mechanism), iterations in sorted(call.broker.image.scram_iterations.items()):
        info = CredentialInfo(mechanism=mechanism, iterations=iterations)
        credentials.setdefault(user, []).append(info)
    wanted = Counter(user.name for user in call.request.users or ()) or Counter(list(credentials))
    return DescribeUserScramCredentialsResponseData(
        error_message="",
        results=[_described(user, times > 1, credentials.get(user)) for user, times in wanted.items()],
    )


def _described(
    user: str, is_repeated: bool, credentials: list[CredentialInfo] | None
) -> DescribeUserScramCredentialsResult:
    if is_repeated:
        return DescribeUserScramCredentialsResult(
            user=user,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message=f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}",
        )
    if credentials is None:
        return DescribeUserScramCredentialsResult(
            user=user,
            error_code=ErrorCode.RESOURCE_NOT_FOUND,
            error_message=f"Attempt to describe a user credential that does not exist: {user}",
        )
    return DescribeUserScramCredentialsResult(user=user, error_message="", credential_infos=credentials)
