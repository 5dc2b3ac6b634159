"""The APIs that are offered beside those of wire/: versions that Kafka's own schemas have, as kio holds them."""

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

import kio.schema
import pytest

from rackspan.gateway.core.apis import OFFERED, TREATMENTS, Treatment
from rackspan.wire.apis import VERSIONS

OF_KAFKA_4_4 = {28: {6}, 88: {1}, 93: {0}, 94: {0}}
"""What kio 0.6.5 lacks of the requests that are only forwarded."""


@pytest.fixture(scope="module")
def of_kafka() -> dict[int, set[int]]:
    """The versions of each request by its key."""
    found: dict[int, set[int]] = {}
    for package in iter_modules(kio.schema.__path__, "kio.schema."):
        names = [one.name for one in iter_modules(import_module(package.name).__path__)] if package.ispkg else []
        if not names or find_spec(f"{package.name}.{names[0]}.request") is None:
            continue
        request = import_module(f"{package.name}.{names[0]}.request")
        (key,) = {int(one.__api_key__) for one in vars(request).values() if hasattr(one, "__api_key__")}
        found[key] = {int(name.removeprefix("v")) for name in names}
    return {key: found.get(key, set()) | OF_KAFKA_4_4.get(key, set()) for key in found.keys() | OF_KAFKA_4_4.keys()}


@pytest.mark.slow
def test_what_is_only_forwarded_is_offered_up_to_kafkas_last_version(of_kafka: dict[int, set[int]]) -> None:
    forwarded = {key: versions for key, versions in OFFERED.items() if key not in VERSIONS}
    assert len(forwarded) == 22
    last = {key: max(of_kafka[key]) for key in forwarded}
    assert {key: versions.stop - 1 for key, versions in forwarded.items()} == last
    # Kafka 4.0 has removed some first versions, which older brokers still have.
    assert all(versions.start in (0, min(of_kafka[key])) for key, versions in forwarded.items())


def test_of_share_groups_the_versions_that_kafka_4_1_has_removed_are_not_offered() -> None:
    """Version 0 was for early access alone."""
    forwarded = {key: versions for key, versions in OFFERED.items() if key not in VERSIONS}
    assert {key: versions.start for key, versions in forwarded.items() if versions.start} == {78: 1, 79: 1}


@pytest.mark.parametrize(
    ("key", "version", "treatment"),
    [
        (0, 9, Treatment.WHOLE),
        (1, 15, Treatment.STREAM),
        (1, 16, Treatment.ENDPOINTS_LAST),
        (3, 1, Treatment.BROKERS_FIRST),
        (10, 4, Treatment.WHOLE),
        (18, 3, Treatment.WHOLE),
        (55, 2, Treatment.WHOLE),
        (60, 1, Treatment.WHOLE),
        (78, 1, Treatment.ENDPOINTS_LAST),
        (79, 1, Treatment.ENDPOINTS_LAST),
        (17, 1, Treatment.STREAM),
        (27, 1, None),
    ],
)
def test_a_response_with_an_address_is_rewritten_and_any_other_forwarded(
    key: int, version: int, treatment: Treatment | None
) -> None:
    """27 is WriteTxnMarkers, which brokers send to each other."""
    assert TREATMENTS.get((key, version)) is treatment
