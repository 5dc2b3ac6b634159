"""Offered APIs: the treatment and the versions of each.

A response that holds a broker's address is rewritten, so that clients come back through the gateway. Everything else is
forwarded as it comes. An API that is not listed is neither offered nor forwarded: its responses could hold addresses.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from rackspan.wire.apis import VERSIONS, ApiKey
from rackspan.wire.messages.api_versions import ApiVersion

SHARE_FETCH: Final = 78
SHARE_ACKNOWLEDGE: Final = 79


class Treatment(Enum):
    """How a response reaches the client."""

    STREAM = "forwarded as it comes"
    BROKERS_FIRST = "the array of brokers at its beginning is rewritten, the rest forwarded as it comes"
    ENDPOINTS_LAST = "forwarded as it comes, the endpoints at its end rewritten"
    WHOLE = "read whole and written again"


_REWRITTEN: Final[Mapping[int, Treatment]] = {
    ApiKey.PRODUCE: Treatment.WHOLE,
    ApiKey.FETCH: Treatment.ENDPOINTS_LAST,
    ApiKey.METADATA: Treatment.BROKERS_FIRST,
    ApiKey.FIND_COORDINATOR: Treatment.WHOLE,
    ApiKey.API_VERSIONS: Treatment.WHOLE,
    ApiKey.DESCRIBE_CLUSTER: Treatment.WHOLE,
    ApiKey.DESCRIBE_QUORUM: Treatment.WHOLE,
    SHARE_FETCH: Treatment.ENDPOINTS_LAST,
    SHARE_ACKNOWLEDGE: Treatment.ENDPOINTS_LAST,
}

_FORWARDED: Final[Mapping[int, range]] = {
    ApiKey.OFFSET_COMMIT: range(2, 11),
    ApiKey.OFFSET_FETCH: range(1, 11),
    ApiKey.TXN_OFFSET_COMMIT: range(7),
    17: range(2),  # SaslHandshake
    34: range(3),  # AlterReplicaLogDirs
    36: range(3),  # SaslAuthenticate
    38: range(4),  # CreateDelegationToken
    39: range(3),  # RenewDelegationToken
    40: range(3),  # ExpireDelegationToken
    41: range(4),  # DescribeDelegationToken
    57: range(3),  # UpdateFeatures
    68: range(2),  # ConsumerGroupHeartbeat
    71: range(1),  # GetTelemetrySubscriptions
    72: range(1),  # PushTelemetry
    76: range(2),  # ShareGroupHeartbeat
    SHARE_FETCH: range(1, 3),
    SHARE_ACKNOWLEDGE: range(1, 3),
    80: range(2),  # AddRaftVoter
    81: range(1),  # RemoveRaftVoter
    88: range(2),  # StreamsGroupHeartbeat
    90: range(2),  # DescribeShareGroupOffsets
    91: range(1),  # AlterShareGroupOffsets
    92: range(1),  # DeleteShareGroupOffsets
    93: range(1),  # StreamsGroupTopologyDescriptionUpdate
    94: range(1),  # UnregisterController
}
"""APIs that are forwarded as they come, but for addresses at their end: versions of Kafka 4.4. The others are in wire/apis.py, which
has the first three too, in the versions that it has classes for."""

BEFORE_LOGIN: Final = frozenset({ApiKey.API_VERSIONS, 17, 36})
"""ApiVersions, SaslHandshake, SaslAuthenticate: brokers respond to them before a client has logged in, and to nothing else."""

_WITHHELD: Final = frozenset({ApiKey.WRITE_TXN_MARKERS})
"""Requests of brokers to each other. Of clients only `kafka-transactions.sh abort` sends one (docs/gateway-failures.md)."""

OFFERED: Final[Mapping[int, range]] = MappingProxyType(
    {key: versions for table in (VERSIONS, _FORWARDED) for key, versions in table.items() if key not in _WITHHELD}
)
"""The versions of each API that the gateway forwards."""

ENDPOINTS_SINCE: Final[Mapping[int, int]] = {ApiKey.FETCH: 16, SHARE_FETCH: 1, SHARE_ACKNOWLEDGE: 1}
"""The first version whose response ends with endpoints (KIP-951, KIP-932)."""


TREATMENTS: Final[Mapping[tuple[int, int], Treatment]] = MappingProxyType(
    {
        (key, version): Treatment.STREAM
        if version < ENDPOINTS_SINCE.get(key, 0)
        else _REWRITTEN.get(key, Treatment.STREAM)
        for key, versions in OFFERED.items()
        for version in versions
    }
)
"""By API key and version of each request that is offered."""


def clipped(apis: Iterable[ApiVersion]) -> list[ApiVersion]:
    """The APIs of a broker that the gateway offers too, each in the versions that both have.

    Produce is offered from version 0 if the broker offers that: librdkafka before 2.6 requires it (KAFKA-18659).
    """
    both = ((api, OFFERED.get(api.api_key)) for api in apis)
    return [
        ApiVersion(
            api_key=api.api_key,
            min_version=api.min_version if api.api_key == ApiKey.PRODUCE else max(api.min_version, versions.start),
            max_version=min(api.max_version, versions.stop - 1),
        )
        for api, versions in both
        if versions is not None and max(api.min_version, versions.start) <= min(api.max_version, versions.stop - 1)
    ]
