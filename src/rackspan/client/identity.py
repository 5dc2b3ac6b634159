"""Proof that a connection ends at the broker, or the controller, that metadata names at its address.

Another broker responds there after the address was given to another host (pods, DHCP), behind a load balancer, or at a wrong port.
What such a broker has in its log is no copy of what the other one should have. The proof is of one connection: another one needs its own.
"""

import asyncio
from enum import Enum
from typing import Final

from rackspan.client.connection import BrokerConnection, first
from rackspan.errors import ClusterRequestFailed, ClusterUnreachable, OtherBroker, UnprovableBroker, UsageError
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode, error_code
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.api_versions import ApiVersionsRequestData, ApiVersionsResponseData
from rackspan.wire.messages.configs import (
    DescribeConfigsRequestData,
    DescribeConfigsResource,
    DescribeConfigsResponseData,
    DescribeConfigsResult,
)
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataResponseData

BROKER_IDENTITY: Final = "broker.identity"

_CHECKED_SINCE: Final = 5
"""The version of ApiVersions that names the cluster and the broker (KIP-1242, Kafka 4.4)."""

_ANY_KEY: Final = "broker.id"
"""One config is enough, and no keys would be all keys."""


class IdentityMode(Enum):
    """What shows which broker a connection ends at."""

    PROVED = "proved"
    """The broker itself, on each connection."""
    ADDRESS = "address"
    """Its address: the broker that responds there counts as it."""


_BY_ADDRESS: Final = (
    f"or set {BROKER_IDENTITY} (argument broker_identity of a producer in Python) to {IdentityMode.ADDRESS.value} "
    "(docs/min-insync-racks.md says what is not promised then)"
)


def identity_of(key: str, value: str) -> IdentityMode:
    """Errors: UsageError, naming the key."""
    try:
        return IdentityMode(value)
    except ValueError:
        choices = " or ".join(identity.value for identity in IdentityMode)
        raise UsageError(f"{key} {value!r}: it is {choices}") from None


async def prove_cluster(connection: BrokerConnection, cluster_id: str, broker: int) -> None:
    """Errors: OtherBroker for a broker of another cluster; UnprovableBroker for one that names none; OSError, RackspanError."""
    request = MetadataRequestData(topics=(), allow_auto_topic_creation=False)
    metadata: MetadataResponseData = await connection.call(ApiKey.METADATA, request)
    if metadata.cluster_id is None:
        raise unnamed_cluster(f"broker {broker}")
    if metadata.cluster_id != cluster_id:
        raise OtherBroker(
            f"a broker of cluster {metadata.cluster_id} responds at the address of broker {broker} of cluster {cluster_id}; "
            "look at its advertised.listeners and what is behind the address"
        )


async def prove_server(
    connection: BrokerConnection, cluster_id: str | None, kind: str, server_id: int, other_id: int
) -> None:
    """Returns if the connection, after its login, ends at this broker or controller, as `kind` says. `other_id` is best of another that is up.

    By ApiVersions, if the broker compares ids there (Kafka 4.4, KIP-1242), else by DescribeConfigs of its own configs, which any other
    broker refuses. The other id has to be refused too: a broker that compares nothing accepts both, and so does a proxy that passes
    a request on to the broker which it names. Errors: OtherBroker; UnprovableBroker; ClusterUnreachable for what may pass; OSError, RackspanError.
    """
    who = f"{kind} {server_id}"
    if not await _is_named_by_versions(connection, cluster_id, who, server_id, other_id):
        await _describe_itself(connection, who, server_id, other_id)


async def _is_named_by_versions(
    connection: BrokerConnection, cluster_id: str | None, who: str, server_id: int, other_id: int
) -> bool:
    """Whether ApiVersions shows it. False if the broker compares no ids. Errors: OtherBroker."""
    offered = connection.offered(ApiKey.API_VERSIONS)
    if cluster_id is None or offered is None or offered[1] < _CHECKED_SINCE:
        return False

    async def error_of(named: int) -> int:
        request = ApiVersionsRequestData(
            client_software_name="rackspan", client_software_version="1", cluster_id=cluster_id, node_id=named
        )
        response: ApiVersionsResponseData = await connection.call(ApiKey.API_VERSIONS, request, _CHECKED_SINCE)
        return response.error_code

    with_other, with_own = await asyncio.gather(error_of(other_id), error_of(server_id))
    if with_own == ErrorCode.REBOOTSTRAP_REQUIRED:
        # Whatever it makes of the other id, which may be its own.
        raise OtherBroker(_misplaced(who, "it refuses that id"))
    return with_own == ErrorCode.NONE and with_other == ErrorCode.REBOOTSTRAP_REQUIRED


async def _describe_itself(connection: BrokerConnection, who: str, server_id: int, other_id: int) -> None:
    # Two requests: a proxy may pass one on by the first broker that it names.
    described = (described_broker(connection, named, _ANY_KEY) for named in (other_id, server_id))
    try:
        of_other, own = await asyncio.gather(*described)
    except ClusterRequestFailed as error:
        # It has no such API, or its response holds nothing.
        raise UnprovableBroker(_unproved(who, f"make it describe its own configs ({error})")) from error
    if own.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        raise UnprovableBroker(_unproved(who, "grant DESCRIBE_CONFIGS on the cluster to this user"))
    if own.error_code == ErrorCode.INVALID_REQUEST:
        raise OtherBroker(_misplaced(who, own.error_message or "it refuses that id"))
    for result in (own, of_other):
        code = error_code(result.error_code)
        if code is ErrorCode.UNKNOWN_SERVER_ERROR or code.is_retriable:
            raise ClusterUnreachable(f"{who} does not describe configs now ({result.error_message or code.name})")
    if own.error_code != ErrorCode.NONE:
        why = own.error_message or error_code(own.error_code).name
        raise UnprovableBroker(_unproved(who, f"make it describe its own configs ({why})"))
    if of_other.error_code != ErrorCode.INVALID_REQUEST:
        raise UnprovableBroker(
            _unproved(who, f"connect to it without a proxy, since what is at its address responds for {other_id} too")
        )


async def described_broker(connection: BrokerConnection, broker: int, key: str) -> DescribeConfigsResult:
    """One config of one broker, which only that broker serves, with an error code. Errors: OSError, RackspanError."""
    resource = DescribeConfigsResource(
        resource_type=ConfigResourceType.BROKER, resource_name=str(broker), configuration_keys=[key]
    )
    request = DescribeConfigsRequestData(resources=[resource], include_synonyms=True)
    response: DescribeConfigsResponseData = await connection.call(ApiKey.DESCRIBE_CONFIGS, request)
    return first(response.results, "broker")


def _misplaced(who: str, why: str) -> str:
    return (
        f"another one responds at the address of {who} ({why}); "
        "look at its advertised.listeners and what is behind the address"
    )


def unnamed_cluster(who: str) -> UnprovableBroker:
    """The error of metadata without a cluster's id."""
    return UnprovableBroker(_unproved(who, "connect to it without a proxy, since metadata there names no cluster"))


def unproved_by_all(error: OtherBroker) -> OtherBroker:
    """The error of one broker where no broker is proved, so that their addresses may never be their own, as behind a proxy."""
    return OtherBroker(f"{error}, {_BY_ADDRESS}")


def _unproved(who: str, remedy: str) -> str:
    return f"{who} gives no proof which one it is, so that its log cannot count: {remedy}, {_BY_ADDRESS}"
