from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from rackspan.errors import UsageError
from rackspan.kafka_source.executor_rack import RackSources, executor_rack
from tests.raw_server import NOT_HTTP, responding, serving


@pytest.fixture(autouse=True)
def _no_rack_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RACKSPAN_RACK", raising=False)


def test_sources_are_looked_at_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, script = tmp_path / "rack", tmp_path / "topology.sh"
    sources = RackSources(file=str(file), by_host={"worker-1": "of-map"}, script=str(script))
    script.write_text("#!/bin/sh\necho /of-script-of-$1\n")
    script.chmod(0o700)

    def found(sources: RackSources, host: str | None = None) -> tuple[str | None, str]:
        rack = executor_rack(sources, host)
        return rack.rack, rack.origin

    assert found(sources, "worker-2") == ("of-script-of-worker-2", f"script {script}")
    assert found(sources, "worker-1.example") == ("of-map", "rack.map of host worker-1.example")
    file.write_text(" of-file \nand more\n")
    assert found(sources, "worker-1") == ("of-file", f"file {file}")
    monkeypatch.setenv("RACKSPAN_RACK", "of-variable")
    assert found(sources, "worker-1") == ("of-variable", "environment variable RACKSPAN_RACK")
    monkeypatch.setenv("NODE_ZONE", "of-other-variable")
    other = RackSources(environment="NODE_ZONE")
    assert found(other) == ("of-other-variable", "environment variable NODE_ZONE")
    assert found(RackSources(fixed="of-option")) == ("of-option", "kafka.client.rack")


def test_no_rack_is_an_outcome_that_says_where_it_was_looked_for() -> None:
    found = executor_rack(RackSources(by_host={}), "worker-1")
    assert found.rack is None
    assert found.origin == "none of environment variable RACKSPAN_RACK, rack.map of host worker-1 gives a rack"


def test_a_script_that_fails_or_is_not_there_is_an_error(tmp_path: Path) -> None:
    script = tmp_path / "topology.sh"
    with pytest.raises(UsageError, match=r"rack\.script: .*cannot be run"):
        executor_rack(RackSources(script=str(script)))
    script.write_text("#!/bin/sh\necho no >&2\nexit 3\n")
    script.chmod(0o700)
    with pytest.raises(UsageError, match=r"rack\.script: .*ended with 3: no"):
        executor_rack(RackSources(script=str(script)))


METADATA = {
    ("PUT", "/latest/api/token"): "token-1",
    ("GET", "/latest/meta-data/placement/availability-zone-id"): "euc1-az2",
    ("GET", "/computeMetadata/v1/instance/zone"): "projects/1/zones/europe-west3-a",
    ("GET", "/metadata/instance/compute/location"): "westeurope",
    ("GET", "/metadata/instance/compute/zone"): "2",
}
REQUIRED_HEADERS = {
    "/latest/meta": ("X-aws-ec2-metadata-token", "token-1"),
    "/compute": ("Metadata-Flavor", "Google"),
    "/metadata": ("Metadata", "true"),
}


class _Metadata(BaseHTTPRequestHandler):
    ENCODING = "utf-8"

    def _respond(self) -> None:
        path = self.path.split("?")[0]
        required = next((header for prefix, header in REQUIRED_HEADERS.items() if path.startswith(prefix)), None)
        allowed = required is None or self.headers.get(required[0]) == required[1]
        self.send_response(200 if allowed else 403)
        self.end_headers()
        self.wfile.write(METADATA[(self.command, path)].encode(self.ENCODING) if allowed else b"refused")

    do_GET = do_PUT = _respond  # noqa: N815 — the library's names

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def metadata_host() -> Iterator[str]:
    with serving(HTTPServer(("127.0.0.1", 0), _Metadata)) as url:
        yield url


@pytest.mark.parametrize(("cloud", "rack"), [("aws", "euc1-az2"), ("gcp", "europe-west3-a"), ("azure", "westeurope-2")])
def test_a_cloud_names_the_rack(cloud: str, rack: str, metadata_host: str) -> None:
    assert executor_rack(RackSources(metadata=cloud, metadata_host=metadata_host)).rack == rack


def test_bytes_that_are_no_text_are_a_rack_with_marks_in_their_place(
    monkeypatch: pytest.MonkeyPatch, metadata_host: str
) -> None:
    monkeypatch.setitem(METADATA, ("GET", "/computeMetadata/v1/instance/zone"), "zones/caf\u00e9")
    monkeypatch.setattr(_Metadata, "ENCODING", "latin-1")
    assert executor_rack(RackSources(metadata="gcp", metadata_host=metadata_host)).rack == "caf\ufffd"


def test_what_speaks_no_http_gives_no_rack() -> None:
    with responding(NOT_HTTP) as url:
        found = executor_rack(RackSources(metadata="gcp", metadata_host=url))
    assert found.rack is None


def test_a_metadata_service_that_does_not_respond_gives_no_rack() -> None:
    found = executor_rack(RackSources(metadata="aws", metadata_host="http://127.0.0.1:1"))
    assert found.rack is None
    assert "metadata of aws" in found.origin
