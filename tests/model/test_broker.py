"""What a broker and a controller are where only their ids are known, which ports and racks they have, and who is on loopback."""

import pytest

from rackspan.errors import InvalidSnapshot
from rackspan.model import Broker, BrokerId, Controller, RackId


def test_a_broker_of_which_only_the_id_is_known_is_a_usable_one_without_a_rack() -> None:
    assert Broker(BrokerId(1)) == Broker(BrokerId(1), rack=None, fenced=False, host=None, port=None, cordoned=False)


def test_a_controller_of_which_only_the_id_is_known_votes_and_may_be_alive_or_not() -> None:
    assert Controller(BrokerId(1)) == Controller(BrokerId(1), rack=None, voter=True, alive=None, active=None)


def test_an_empty_rack_is_none_and_any_other_stays() -> None:
    assert Broker(BrokerId(1), RackId("")).rack is None
    assert Broker(BrokerId(1), RackId("a")).rack == "a"


@pytest.mark.parametrize("port", [0, 65_535])
def test_a_port_may_be_any_that_tcp_has(port: int) -> None:
    assert Broker(BrokerId(1), port=port).port == port


@pytest.mark.parametrize("port", [-1, 65_536])
def test_a_port_that_tcp_does_not_have_is_refused(port: int) -> None:
    with pytest.raises(InvalidSnapshot) as refused:
        Broker(BrokerId(7), port=port)
    assert str(refused.value) == f"broker 7: port {port} is outside 0 to 65535; fix it in the file"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.4.5.6", "::1"])
def test_a_broker_is_on_loopback_by_its_name_or_address(host: str) -> None:
    assert Broker(BrokerId(1), host=host).on_loopback is True


@pytest.mark.parametrize("host", [None, "", "10.127.0.1", "localhost.example", "::", "::1:2"])
def test_a_broker_elsewhere_or_anywhere_is_not_on_loopback(host: str | None) -> None:
    assert Broker(BrokerId(1), host=host).on_loopback is False
