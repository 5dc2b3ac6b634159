from rackspan.gateway.core.reader_racks import (
    CLIENTS_MAX,
    LEFT_ALONE_SECONDS,
    REPEATED_WITHIN_SECONDS,
    ReaderRacks,
    Redirects,
)
from rackspan.model.client_networks import ClientNetworks
from rackspan.model.ids import RackId

CLIENT = ("10.0.1.7", "app")
KEY = (b"orders", 0)


def test_a_client_id_counts_before_an_address_and_that_before_the_gateways_own_rack() -> None:
    racks = ReaderRacks(RackId("r1"), {"billing-.*": RackId("r3")}, ClientNetworks({"10.0.2.0/24": "r2"}))
    assert racks.of("10.0.2.1", "billing-7") == "r3"
    assert racks.of("10.0.2.1", "my-billing-7") == "r2", "a pattern is of the whole id"
    assert racks.of("10.0.3.1", "other") == "r1"
    assert ReaderRacks(None, {}, ClientNetworks({"10.0.2.0/24": "r2"})).of("10.0.3.1", "other") is None


def test_no_rule_writes_no_rack() -> None:
    assert not ReaderRacks().is_on
    assert ReaderRacks(RackId("r1")).is_on
    assert ReaderRacks(client_ids={"a": RackId("r1")}).is_on
    assert ReaderRacks(networks=ClientNetworks({"10.0.0.0/8": "r1"})).is_on


def test_a_client_that_is_redirected_twice_and_stays_is_left_alone_for_ten_minutes() -> None:
    redirects = Redirects()
    assert redirects.may_write(CLIENT, 1, [KEY], 0.0)
    redirects.redirected(CLIENT, KEY, 2, 0.0)
    assert redirects.may_write(CLIENT, 1, [KEY], 0.1)
    redirects.redirected(CLIENT, KEY, 2, 0.1)
    assert not redirects.may_write(CLIENT, 1, [KEY], 0.2)
    assert redirects.left_alone == 1
    assert not redirects.may_write(CLIENT, 1, [KEY], 0.1 + LEFT_ALONE_SECONDS - 1)
    assert redirects.may_write(CLIENT, 1, [KEY], 0.1 + LEFT_ALONE_SECONDS)


def test_a_client_that_fetches_where_it_was_sent_is_never_left_alone() -> None:
    redirects = Redirects()
    redirects.redirected(CLIENT, KEY, 2, 0.0)
    assert redirects.may_write(CLIENT, 2, [KEY], 0.1)
    for at in range(9):
        redirects.redirected(CLIENT, KEY, 2, 1.0 + at)
    assert redirects.may_write(CLIENT, 1, [KEY], 10.0)
    assert redirects.left_alone == 0


def test_another_partition_at_that_broker_proves_nothing() -> None:
    redirects = Redirects()
    redirects.redirected(CLIENT, KEY, 2, 0.0)
    assert redirects.may_write(CLIENT, 2, [(b"orders", 1)], 0.1)
    redirects.redirected(CLIENT, KEY, 2, 0.2)
    assert not redirects.may_write(CLIENT, 1, [KEY], 0.3)


def test_many_partitions_at_once_are_one_redirect_each() -> None:
    redirects = Redirects()
    for partition in range(100):
        redirects.redirected(CLIENT, (b"orders", partition), 2, 0.0)
    assert redirects.may_write(CLIENT, 1, [KEY], 0.1)


def test_a_client_that_comes_back_after_its_metadata_age_is_as_at_first() -> None:
    redirects = Redirects()
    for at in range(5):
        redirects.redirected(CLIENT, KEY, 2, at * (REPEATED_WITHIN_SECONDS + 1))
    assert redirects.may_write(CLIENT, 1, [KEY], 1000.0)


def test_so_many_clients_are_remembered_and_no_more() -> None:
    redirects = Redirects()
    for number in range(CLIENTS_MAX + 5):
        redirects.redirected((str(number), ""), KEY, 2, 0.0)
    redirects.redirected(("0", ""), KEY, 2, 0.1)
    assert redirects.may_write(("0", ""), 1, [KEY], 0.2), "its first redirect was forgotten"
    redirects.redirected((str(CLIENTS_MAX), ""), KEY, 2, 0.1)
    assert not redirects.may_write((str(CLIENTS_MAX), ""), 1, [KEY], 0.2)
