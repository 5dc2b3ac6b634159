"""The rack of a client by the ranges of addresses that have it."""

import pytest

from rackspan.errors import UsageError
from rackspan.model.client_networks import ClientNetworks

RANGES = {"10.0.0.0/16": "r1", "10.0.2.0/24": "r2", "10.0.2.128": "r3", "fd00:1::/32": "r4"}


@pytest.mark.parametrize(
    ("host", "rack"),
    [
        ("10.0.7.7", "r1"),
        ("10.0.2.7", "r2"),
        ("10.0.2.128", "r3"),
        ("10.1.0.1", None),
        ("fd00:1::7", "r4"),
        ("fd00:2::7", None),
        ("client.example", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("ranges", [RANGES, dict(reversed(RANGES.items()))])
def test_the_narrowest_range_says_where_an_address_is(ranges: dict[str, str], host: str, rack: str | None) -> None:
    assert ClientNetworks(ranges).rack_of(host) == rack


@pytest.mark.parametrize("text", ["10.0.0.0/33", "10.0.0.1/24", "zone-a", ""])
def test_a_range_that_is_none_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"^client network .*; write 10\.0\.1\.0/24 or one address$"):
        ClientNetworks({text: "r1"})
