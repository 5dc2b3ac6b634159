"""ApiVersions (key 18), versions 0-4. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class ApiVersionsRequestData(WireStruct):
    __slots__ = ("client_software_name", "client_software_version")

    def __init__(self, *, client_software_name: str = "", client_software_version: str = "") -> None:
        self.client_software_name = client_software_name
        self.client_software_version = client_software_version


class ApiVersion(WireStruct):
    __slots__ = ("api_key", "min_version", "max_version")

    def __init__(self, *, api_key: int = 0, min_version: int = 0, max_version: int = 0) -> None:
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version


class SupportedFeatureKey(WireStruct):
    __slots__ = ("name", "min_version", "max_version")

    def __init__(self, *, name: str = "", min_version: int = 0, max_version: int = 0) -> None:
        self.name = name
        self.min_version = min_version
        self.max_version = max_version


class FinalizedFeatureKey(WireStruct):
    __slots__ = ("name", "max_version_level", "min_version_level")

    def __init__(self, *, name: str = "", max_version_level: int = 0, min_version_level: int = 0) -> None:
        self.name = name
        self.max_version_level = max_version_level
        self.min_version_level = min_version_level


class ApiVersionsResponseData(WireStruct):
    __slots__ = (
        "error_code",
        "api_keys",
        "throttle_time",
        "supported_features",
        "finalized_features_epoch",
        "finalized_features",
        "zk_migration_ready",
    )
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "api_keys": ApiVersion,
        "supported_features": SupportedFeatureKey,
        "finalized_features": FinalizedFeatureKey,
    }

    def __init__(
        self,
        *,
        error_code: int = 0,
        api_keys: Sequence[ApiVersion] = (),
        throttle_time: int = 0,
        supported_features: Sequence[SupportedFeatureKey] = (),
        finalized_features_epoch: int = -1,
        finalized_features: Sequence[FinalizedFeatureKey] = (),
        zk_migration_ready: bool = False,
    ) -> None:
        self.error_code = error_code
        self.api_keys = api_keys
        self.throttle_time = throttle_time
        self.supported_features = supported_features
        self.finalized_features_epoch = finalized_features_epoch
        self.finalized_features = finalized_features
        self.zk_migration_ready = zk_migration_ready
