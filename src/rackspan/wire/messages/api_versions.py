"""Requests and responses: api versions. Generated from kio's schemas by tools/wire_messages.py: do not edit.

ApiVersions (key 18), versions 0-5.
"""

from collections.abc import Sequence

from rackspan.wire.messages.base import WireStruct


class ApiVersionsRequestData(WireStruct):
    client_software_name: str = ""
    client_software_version: str = ""
    cluster_id: str | None = None
    node_id: int = -1


class ApiVersion(WireStruct):
    api_key: int = 0
    min_version: int = 0
    max_version: int = 0


class SupportedFeatureKey(WireStruct):
    name: str = ""
    min_version: int = 0
    max_version: int = 0


class FinalizedFeatureKey(WireStruct):
    name: str = ""
    max_version_level: int = 0
    min_version_level: int = 0


class ApiVersionsResponseData(WireStruct):
    error_code: int = 0
    api_keys: Sequence[ApiVersion] = ()
    throttle_time: int = 0
    supported_features: Sequence[SupportedFeatureKey] = ()
    finalized_features_epoch: int = -1
    finalized_features: Sequence[FinalizedFeatureKey] = ()
    zk_migration_ready: bool = False
