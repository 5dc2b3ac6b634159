"""[readers]: which rack a client is in that names none."""

from typing import Any

import pytest

from rackspan.errors import UsageError
from rackspan.gateway.config import parse_config


def config(**readers: Any) -> Any:
    return parse_config({"bootstrap": {"servers": "a:1"}, "readers": readers}).readers


def test_names_with_dots_are_keys_of_their_own_tables() -> None:
    readers = config(rack="r1", networks={"10.0.2.0/24": "r2"}, clients={"billing\\..*": "r3"})
    assert readers.of("10.0.2.7", "app") == "r2"
    assert readers.of("10.0.3.7", "billing.eu") == "r3"
    assert readers.of("10.0.3.7", "app") == "r1"
    assert not readers.replaces
    assert config(rack="r1", replace={"client": {"rack": True}}).replaces


@pytest.mark.parametrize(
    ("readers", "words"),
    [
        ({"networks": {"10.0.2.0/33": "r2"}}, "client network '10.0.2.0/33'"),
        ({"networks": {"10.0.2.0/24": 2}}, "10.0.2.0/24"),
        ({"networks": "r1"}, "readers.networks"),
        ({"clients": {"(": "r2"}}, "[readers.clients] '(': not a regular expression"),
        ({"rack": ""}, "readers.rack"),
        ({"colour": "red"}, "readers.colour"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(readers: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as refusal:
        config(**readers)
    assert words in str(refusal.value)
    assert str(refusal.value).startswith("config")
    assert "\n" not in str(refusal.value)
