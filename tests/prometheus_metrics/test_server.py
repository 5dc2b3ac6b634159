"""The server of metrics and health pages, by a client of the standard library."""

import asyncio
import socket
import urllib.request
from contextlib import suppress
from urllib.error import HTTPError

import pytest
from prometheus_client.core import GaugeMetricFamily

from rackspan.errors import UsageError
from rackspan.prometheus_metrics.server import MetricsEndpoint, MetricsServer
from tests.waiting import WITHIN_SECONDS


def collected() -> list[GaugeMetricFamily]:
    return [GaugeMetricFamily("requests", "requests", value=3)]


def page(address: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=WITHIN_SECONDS) as response:
            return response.status, response.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_a_server_responds_until_it_is_closed() -> None:
    with MetricsServer("127.0.0.1:0", collected) as server:
        assert page(server.address, "/metrics") == (
            200,
            "# HELP requests requests\n# TYPE requests gauge\nrequests 3.0\n",
        )
    with pytest.raises(OSError, match="refused"):
        page(server.address, "/metrics")


def test_the_end_during_a_request_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    with MetricsServer("127.0.0.1:0", collected) as server:
        host, _, port = server.address.partition(":")
        with socket.create_connection((host, int(port)), WITHIN_SECONDS):
            # Behind it, so that the server has accepted it by then.
            page(server.address, "/metrics")
            server.close()
    assert caplog.messages == []


def test_clients_that_send_nothing_do_not_keep_others_out_and_are_bounded() -> None:
    """Open files are the whole process's: without a bound those who open such connections took them from a gateway's clients."""

    async def scenario() -> None:
        endpoint = MetricsEndpoint("metrics listener", ("127.0.0.1", 0), collected)
        await endpoint.open()
        host, _, port = endpoint.address.partition(":")
        silent = [await asyncio.open_connection(host, int(port)) for _ in range(60)]
        status, _ = await asyncio.to_thread(page, endpoint.address, "/metrics")
        assert status == 200
        assert len(endpoint._serving) <= 24
        async with asyncio.timeout(WITHIN_SECONDS):
            for reader, _ in silent[:30]:
                with suppress(ConnectionError):
                    assert await reader.read() == b"", "the oldest are closed, with no response"
        assert not silent[-1][0].at_eof()
        for _, writer in silent:
            writer.close()
        endpoint.close()

    asyncio.run(scenario())


def test_requests_that_wait_for_metrics_share_them_and_take_a_fifth_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request has 20 bytes, and metrics of thousands of topics take tens of milliseconds, in which a gateway serves nobody."""
    clock, sleeps, collections = [100.0], list[float](), list[float]()

    def slow() -> list[GaugeMetricFamily]:
        collections.append(clock[0])
        clock[0] += 0.5
        return collected()

    async def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        clock[0] += seconds

    async def scenario() -> None:
        endpoint = MetricsEndpoint("metrics listener", ("127.0.0.1", 0), slow)
        monkeypatch.setattr(asyncio, "sleep", sleep)
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: clock[0])
        for _ in range(3):
            assert len(set(await asyncio.gather(*(endpoint._metrics() for _ in range(20))))) == 1

    asyncio.run(scenario())
    assert sleeps == pytest.approx([0.0, 2.0, 2.0])
    assert collections == pytest.approx([100.0, 102.5, 105.0])


def test_an_unknown_path_is_no_page() -> None:
    """A probe of a path that is misspelt has to fail."""
    with MetricsServer("127.0.0.1:0", collected) as server:
        assert page(server.address, "/ready") == (404, "/metrics\n")


def test_an_endpoint_has_pages_with_a_status() -> None:
    async def pages() -> list[tuple[int, str]]:
        health = {"/healthz": lambda: (200, "running\n"), "/readyz": lambda: (503, "not yet\n")}
        endpoint = MetricsEndpoint("listen.http", ("127.0.0.1", 0), collected, health)
        await endpoint.open()
        found = [await asyncio.to_thread(page, endpoint.address, path) for path in ("/healthz", "/readyz", "/other")]
        endpoint.close()
        return found

    assert asyncio.run(pages()) == [(200, "running\n"), (503, "not yet\n"), (404, "/healthz, /readyz, /metrics\n")]


def test_a_port_in_use_is_named_with_the_setting() -> None:
    with (
        MetricsServer("127.0.0.1:0", collected) as server,
        pytest.raises(UsageError, match=f"metrics listener {server.address}: Address already in use; choose another"),
    ):
        MetricsServer(server.address, collected)


@pytest.mark.parametrize(("listen", "warned"), [("0.0.0.0:0", True), ("[::]:0", True), ("127.0.0.1:0", False)])
def test_off_loopback_a_warning_says_who_is_served(listen: str, warned: bool, caplog: pytest.LogCaptureFixture) -> None:
    with MetricsServer(listen, collected) as server:
        port = server.address.rpartition(":")[2]
        here = "[::1]" if "[" in listen else "127.0.0.1"
        with urllib.request.urlopen(f"http://{here}:{port}/metrics", timeout=WITHIN_SECONDS) as scraped:
            assert scraped.status == 200
    assert [record.message for record in caplog.records if "without a login" in record.message] != [] or not warned
    assert warned or not caplog.records
