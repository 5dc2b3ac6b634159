"""Requests and responses: scram credentials. Generated from kio's schemas by tools/wire_messages.py: do not edit.

DescribeUserScramCredentials (key 50), version 0; AlterUserScramCredentials (key 51), version 0.
"""

from collections.abc import Sequence

from rackspan.wire.messages.base import WireStruct


class UserName(WireStruct):
    name: str = ""


class DescribeUserScramCredentialsRequestData(WireStruct):
    users: Sequence[UserName] | None = None


class CredentialInfo(WireStruct):
    mechanism: int = 0
    iterations: int = 0


class DescribeUserScramCredentialsResult(WireStruct):
    user: str = ""
    error_code: int = 0
    error_message: str | None = None
    credential_infos: Sequence[CredentialInfo] = ()


class DescribeUserScramCredentialsResponseData(WireStruct):
    throttle_time: int = 0
    error_code: int = 0
    error_message: str | None = None
    results: Sequence[DescribeUserScramCredentialsResult] = ()


class ScramCredentialDeletion(WireStruct):
    name: str = ""
    mechanism: int = 0


class ScramCredentialUpsertion(WireStruct):
    name: str = ""
    mechanism: int = 0
    iterations: int = 0
    salt: bytes = b""
    salted_password: bytes = b""


class AlterUserScramCredentialsRequestData(WireStruct):
    deletions: Sequence[ScramCredentialDeletion] = ()
    upsertions: Sequence[ScramCredentialUpsertion] = ()


class AlterUserScramCredentialsResult(WireStruct):
    user: str = ""
    error_code: int = 0
    error_message: str | None = None


class AlterUserScramCredentialsResponseData(WireStruct):
    throttle_time: int = 0
    results: Sequence[AlterUserScramCredentialsResult] = ()
