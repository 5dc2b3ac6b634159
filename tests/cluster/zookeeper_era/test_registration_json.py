"""The registration of KIP-36: five versions, three kinds of readers."""

import json

import pytest

from rackspan.cluster.zookeeper_era.registration_json import (
    Registration,
    RegistrationReader,
    read_registration,
    write_registration,
)
from rackspan.errors import UnreadableRegistration
from rackspan.model.ids import RackId

ONE = Registration(
    "host1",
    9092,
    ("PLAINTEXT://host1:9092", "SSL://host1:9093"),
    RackId("dc1"),
    9999,
    "2233345666",
    {"PLAINTEXT": "PLAINTEXT", "SSL": "SSL"},
    {"metadata": (1, 2)},
)


def test_version_3_is_the_texts_example() -> None:
    assert json.loads(write_registration(ONE, 3)) == {
        "version": 3,
        "host": "host1",
        "port": 9092,
        "jmx_port": 9999,
        "timestamp": "2233345666",
        "endpoints": ["PLAINTEXT://host1:9092", "SSL://host1:9093"],
        "rack": "dc1",
    }


@pytest.mark.parametrize(
    ("version", "more"),
    [
        (1, set()),
        (2, {"endpoints"}),
        (3, {"endpoints", "rack"}),
        (4, {"endpoints", "rack", "listener_security_protocol_map"}),
        (5, {"endpoints", "rack", "listener_security_protocol_map", "features"}),
    ],
)
def test_each_version_has_what_it_brought(version: int, more: set[str]) -> None:
    plain = {"version", "host", "port", "jmx_port", "timestamp"}
    assert set(json.loads(write_registration(ONE, version))) == plain | more
    assert read_registration(write_registration(ONE, version)).rack == ("dc1" if version >= 3 else None)
    assert version < 5 or read_registration(write_registration(ONE, 5)) == ONE


@pytest.mark.parametrize("version", range(1, 6))
def test_a_broker_without_a_rack_has_no_such_key(version: int) -> None:
    text = write_registration(Registration("host1", 9092), version)
    assert "rack" not in json.loads(text)
    assert read_registration(text).rack is None


@pytest.mark.parametrize("version", range(1, 6))
def test_a_reader_of_the_0_9_kind_refuses_what_it_does_not_know(version: int) -> None:
    text = write_registration(ONE, version)
    if version <= 2:
        assert read_registration(text, RegistrationReader.V0_9_0_0).host == "host1"
    else:
        with pytest.raises(UnreadableRegistration, match=f"version {version}"):
            read_registration(text, RegistrationReader.V0_9_0_0)


@pytest.mark.parametrize("version", [*range(1, 6), 9])
def test_the_fixed_reader_accepts_any_version_and_reads_no_rack(version: int) -> None:
    text = json.dumps({**json.loads(write_registration(ONE, 3)), "version": version})
    assert read_registration(text, RegistrationReader.V0_9_0_1).rack is None
    assert read_registration(text, RegistrationReader.V0_10_0).rack == "dc1"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": "3"}', '{"version": 0}', '{"version": 3, "port": 1}'])
def test_what_is_no_registration_is_refused(text: str) -> None:
    with pytest.raises(UnreadableRegistration):
        read_registration(text)


def test_there_is_no_version_6() -> None:
    with pytest.raises(ValueError, match="1 to 5"):
        write_registration(ONE, 6)
