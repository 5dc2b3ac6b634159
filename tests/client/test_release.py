"""The warning about a Kafka that is newer than those tested."""

import asyncio
from typing import Any

import pytest

from rackspan.client.release import release_warnings
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.api_versions import (
    ApiVersionsRequestData,
    ApiVersionsResponseData,
    FinalizedFeatureKey,
)
from rackspan.wire.messages.base import WireStruct


def warnings(response: ApiVersionsResponseData | Exception) -> tuple[str, ...]:
    async def call(api_key: ApiKey, request: WireStruct) -> Any:
        assert api_key is ApiKey.API_VERSIONS
        assert isinstance(request, ApiVersionsRequestData)
        assert request.client_software_name
        if isinstance(response, Exception):
            raise response
        return response

    return asyncio.run(release_warnings(call))


def features(**levels: int) -> ApiVersionsResponseData:
    named = [
        FinalizedFeatureKey(name=name.replace("_", "."), max_version_level=level) for name, level in levels.items()
    ]
    return ApiVersionsResponseData(finalized_features=named)


def test_a_metadata_version_after_kafka_4_4_is_warned_of_once() -> None:
    assert warnings(features(group_version=1, metadata_version=34)) == (
        "metadata.version of the cluster is 34, and rackspan is tested up to 33 (Kafka 4.4): "
        "what a later Kafka has changed is not known here",
    )


@pytest.mark.parametrize(
    "response", [features(metadata_version=33, group_version=99), features(), TimeoutError("late")]
)
def test_a_metadata_version_that_is_tested_or_not_reported_is_not(
    response: ApiVersionsResponseData | Exception,
) -> None:
    assert warnings(response) == ()
