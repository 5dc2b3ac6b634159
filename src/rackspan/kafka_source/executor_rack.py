"""The rack of the machine that a task runs on, found inside the task.

The first of these that is configured and gives a value: a fixed rack (`kafka.client.rack`, the same for all executors, as in Spark's
connector), an environment variable, a file, a map from host names, a script, the cloud's metadata service. Spark sets the
same environment on every executor, so a variable must come from the machine or the pod, not from spark.executorEnv.

None is a valid outcome: the task then reads from leaders and reports that it has no rack.
"""

import http.client
import os
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rackspan.errors import UsageError

DEFAULT_VARIABLE: Final = "RACKSPAN_RACK"

_METADATA_SECONDS: Final = 2.0
_SCRIPT_SECONDS: Final = 10.0

_METADATA_HOST: Final = "http://169.254.169.254"
"""The link-local address that AWS, Google Cloud and Azure share."""


@dataclass(frozen=True, slots=True)
class RackSources:
    """Where to look for the rack, in the order of the fields."""

    fixed: str | None = None
    environment: str = DEFAULT_VARIABLE
    """The variable's name."""
    file: str | None = None
    """Its first line is the rack."""
    by_host: Mapping[str, str] | None = None
    """Full or short host name to rack."""
    script: str | None = None
    """Called with the host name, it prints the rack; a leading slash, as Hadoop's topology scripts print, is cut off."""
    metadata: str | None = None
    """aws, gcp or azure."""
    metadata_host: str | None = None
    """Another address of the metadata service, for tests and proxies."""


@dataclass(frozen=True, slots=True)
class ExecutorRack:
    rack: str | None
    origin: str
    """Where it was found, or what was looked at in vain."""


def executor_rack(sources: RackSources, host: str | None = None) -> ExecutorRack:
    """The rack of this machine. `host` replaces its name in tests. Errors: UsageError if a source is unreadable."""
    host = host or socket.gethostname()
    tried = []
    for origin, look_up in _look_ups(sources, host):
        rack = look_up()
        if rack:
            return ExecutorRack(rack, origin)
        tried.append(origin)
    return ExecutorRack(None, f"none of {', '.join(tried)} gives a rack")


def _look_ups(sources: RackSources, host: str) -> Iterator[tuple[str, Callable[[], str | None]]]:
    if sources.fixed is not None:
        fixed = sources.fixed
        yield "kafka.client.rack", lambda: fixed
    yield f"environment variable {sources.environment}", lambda: os.environ.get(sources.environment)
    if sources.file is not None:
        file = Path(sources.file)
        yield f"file {file}", lambda: _first_line(file)
    if sources.by_host is not None:
        racks = sources.by_host
        yield f"rack.map of host {host}", lambda: racks.get(host) or racks.get(host.split(".")[0])
    if sources.script is not None:
        script = sources.script
        yield f"script {script}", lambda: _printed(script, host)
    if sources.metadata is not None:
        kind, at = sources.metadata, sources.metadata_host or _METADATA_HOST
        yield f"metadata of {kind}", lambda: _METADATA[kind](at.rstrip("/"))


def _first_line(path: Path) -> str | None:
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UsageError(f"option rack.file: {path} cannot be read: {error}") from None
    return lines[0].strip() if lines else None


def _printed(script: str, host: str) -> str | None:
    try:
        done = subprocess.run([script, host], capture_output=True, text=True, timeout=_SCRIPT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise UsageError(f"option rack.script: {script} cannot be run: {error}") from None
    if done.returncode:
        raise UsageError(f"option rack.script: {script} ended with {done.returncode}: {done.stderr.strip()[:200]}")
    return done.stdout.strip().removeprefix("/") or None


def _aws(host: str) -> str | None:
    token = _fetched(f"{host}/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"}, "PUT")
    headers = {"X-aws-ec2-metadata-token": token} if token else {}
    return _fetched(f"{host}/latest/meta-data/placement/availability-zone-id", headers)


def _gcp(host: str) -> str | None:
    zone = _fetched(f"{host}/computeMetadata/v1/instance/zone", {"Metadata-Flavor": "Google"})
    return zone.rsplit("/", 1)[-1] if zone else None


def _azure(host: str) -> str | None:
    compute = f"{host}/metadata/instance/compute"
    query = "?api-version=2021-02-01&format=text"
    location = _fetched(f"{compute}/location{query}", {"Metadata": "true"})
    zone = _fetched(f"{compute}/zone{query}", {"Metadata": "true"})
    return f"{location}-{zone}" if location and zone else None


_METADATA: Final[Mapping[str, Callable[[str], str | None]]] = {"aws": _aws, "gcp": _gcp, "azure": _azure}


def _fetched(url: str, headers: Mapping[str, str], method: str = "GET") -> str | None:
    request = urllib.request.Request(url, headers=dict(headers), method=method)  # noqa: S310 — http by construction
    try:
        with urllib.request.urlopen(request, timeout=_METADATA_SECONDS) as response:  # noqa: S310 — as above
            text: str = response.read(10_000).decode(errors="replace").strip()
    except (http.client.HTTPException, urllib.error.URLError, OSError, ValueError):
        return None
    return text or None
