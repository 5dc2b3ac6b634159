"""DescribeUserScramCredentials (key 50), version 0. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class UserName(WireStruct):
    __slots__ = ("name",)

    def __init__(self, *, name: str = "") -> None:
        self.name = name


class DescribeUserScramCredentialsRequestData(WireStruct):
    __slots__ = ("users",)
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"users": UserName}

    def __init__(self, *, users: Sequence[UserName] | None = None) -> None:
        self.users = users


class CredentialInfo(WireStruct):
    __slots__ = ("mechanism", "iterations")

    def __init__(self, *, mechanism: int = 0, iterations: int = 0) -> None:
        self.mechanism = mechanism
        self.iterations = iterations


class DescribeUserScramCredentialsResult(WireStruct):
    __slots__ = ("user", "error_code", "error_message", "credential_infos")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"credential_infos": CredentialInfo}

    def __init__(
        self,
        *,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = None,
        credential_infos: Sequence[CredentialInfo] = (),
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message
        self.credential_infos = credential_infos


class DescribeUserScramCredentialsResponseData(WireStruct):
    __slots__ = ("throttle_time", "error_code", "error_message", "results")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"results": DescribeUserScramCredentialsResult}

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        results: Sequence[DescribeUserScramCredentialsResult] = (),
    ) -> None:
        self.throttle_time = throttle_time
        self.error_code = error_code
        self.error_message = error_message
        self.results = results
