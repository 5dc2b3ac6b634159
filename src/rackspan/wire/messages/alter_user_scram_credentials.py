"""AlterUserScramCredentials (key 51), version 0. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class ScramCredentialDeletion(WireStruct):
    __slots__ = ("name", "mechanism")

    def __init__(self, *, name: str = "", mechanism: int = 0) -> None:
        self.name = name
        self.mechanism = mechanism


class ScramCredentialUpsertion(WireStruct):
    __slots__ = ("name", "mechanism", "iterations", "salt", "salted_password")

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        iterations: int = 0,
        salt: bytes = b"",
        salted_password: bytes = b"",
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.iterations = iterations
        self.salt = salt
        self.salted_password = salted_password


class AlterUserScramCredentialsRequestData(WireStruct):
    __slots__ = ("deletions", "upsertions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "deletions": ScramCredentialDeletion,
        "upsertions": ScramCredentialUpsertion,
    }

    def __init__(
        self,
        *,
        deletions: Sequence[ScramCredentialDeletion] = (),
        upsertions: Sequence[ScramCredentialUpsertion] = (),
    ) -> None:
        self.deletions = deletions
        self.upsertions = upsertions


class AlterUserScramCredentialsResult(WireStruct):
    __slots__ = ("user", "error_code", "error_message")

    def __init__(self, *, user: str = "", error_code: int = 0, error_message: str | None = None) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message


class AlterUserScramCredentialsResponseData(WireStruct):
    __slots__ = ("throttle_time", "results")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"results": AlterUserScramCredentialsResult}

    def __init__(self, *, throttle_time: int = 0, results: Sequence[AlterUserScramCredentialsResult] = ()) -> None:
        self.throttle_time = throttle_time
        self.results = results
