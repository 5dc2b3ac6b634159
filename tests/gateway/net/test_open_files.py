"""The limit of open files: raised at start, named where it is too low, and a bound of connections."""

import asyncio
import logging
import resource
from contextlib import closing

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.gateway import check
from rackspan.gateway.check import CheckLevel, check_cluster
from rackspan.gateway.clients import connections
from rackspan.gateway.config import parse_config
from rackspan.gateway.net import open_files
from tests.gateway.net.test_session import API_VERSIONS, connection, framed, is_closed, received
from tests.gateway.running import document, running


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    try:
        assert open_files.raise_limit() == hard
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_process_without_a_limit_has_two_billion_files_and_a_client_takes_two(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    none = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, none))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: None)
    assert open_files.raise_limit() == 2_147_483_648
    assert open_files.files_for(5000, 3) == 10_088


@pytest.mark.parametrize("files", [0, 100, 1024, 20_000])
@pytest.mark.parametrize("brokers", [1, 3, 100])
def test_so_many_clients_as_files_suffice_for(files: int, brokers: int) -> None:
    clients = open_files.clients_within(files, brokers)
    assert open_files.files_for(clients, brokers) <= files or clients == 1
    assert open_files.files_for(clients + 1, brokers) > files
    assert (open_files.too_few(files, clients, brokers) is None) == (open_files.files_for(clients, brokers) <= files)


def test_connections_are_bound_by_open_files(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connections, "raise_limit", lambda: open_files.files_for(2, 3))
    with caplog.at_level(logging.WARNING), running(cluster.bootstrap_servers) as gateway:
        assert "at most 2 clients can connect, listen.max.connections is 5000" in caplog.text
        with closing(connection(gateway)) as first, closing(connection(gateway)) as second:
            for link in (first, second):
                link.sendall(framed(API_VERSIONS))
                received(link)
            with closing(connection(gateway)) as third:
                assert is_closed(third)


@pytest.mark.parametrize(("clients", "level"), [(2, CheckLevel.OK), (3, CheckLevel.WARNING)])
def test_check_says_whether_open_files_suffice(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, clients: int, level: CheckLevel
) -> None:
    monkeypatch.setattr(check, "raise_limit", lambda: open_files.files_for(2, 3))
    config = parse_config(document(cluster.bootstrap_servers, listen={"max": {"connections": clients}}))
    results = {result.check: result for result in asyncio.run(check_cluster(config))}
    assert results["open files"].level is level
