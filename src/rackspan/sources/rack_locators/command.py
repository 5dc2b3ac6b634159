"""`command`: a topology script as in Hadoop: called with hosts, it prints their racks in the same order.

`command=/etc/kafka/topology.sh` is a program and its arguments, split as a shell would and run without a shell.
`timeout.ms` (30000) bounds each call; `hosts.max` (100, Hadoop's own default) is how many hosts one call is given.
"""

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from rackspan.ends import end_within
from rackspan.errors import RackLocatorFailed, UsageError
from rackspan.model import Broker, BrokerId, RackId
from rackspan.sources.rack_locator import ClusterView, Properties, refuse_unknown, required
from rackspan.text import count_noun

DEFAULT_TIMEOUT_MS: Final = 30_000
DEFAULT_HOSTS_MAX: Final = 100


class TopologyCommand:
    def __init__(self, properties: Properties) -> None:
        refuse_unknown("command", properties, frozenset({"command", "timeout.ms", "hosts.max"}))
        text = required("command", properties, "command")
        try:
            self._words = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"rack locator command: {text!r}: {error}; correct the quotes") from None
        if not self._words:
            raise UsageError("rack locator command: property command is blank; give a program and its arguments")
        self._timeout_ms = _number(properties, "timeout.ms", DEFAULT_TIMEOUT_MS)
        self._hosts_max = _number(properties, "hosts.max", DEFAULT_HOSTS_MAX)

    def rack_info(self, cluster: ClusterView) -> dict[BrokerId, RackId]:
        """Errors: RackLocatorFailed where the script fails, is late, or prints another number of racks than hosts."""
        host_of = {broker.id: _host(broker) for broker in cluster.brokers}
        hosts = list(dict.fromkeys(host_of.values()))
        rack_of: dict[str, RackId] = {}
        for batch in _batches(hosts, self._hosts_max):
            rack_of.update(zip(batch, self._racks(batch), strict=True))
        return {broker: rack_of[host] for broker, host in host_of.items()}

    def _racks(self, hosts: Sequence[str]) -> list[RackId]:
        racks = self._printed(hosts).split()
        if len(racks) != len(hosts):
            raise self._failed(
                f"printed {count_noun(len(racks), 'rack')} for {count_noun(len(hosts), 'host')}; it must print one each"
            )
        return [RackId(rack) for rack in racks]

    def _printed(self, hosts: Sequence[str]) -> str:
        try:
            # A session of its own, so that processes that the script starts can be ended with it.
            process = subprocess.Popen(
                [*self._words, *hosts],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise self._failed(
                f"cannot be started: {getattr(error, 'strerror', None) or error}; correct command"
            ) from None
        try:
            out, err = process.communicate(timeout=self._timeout_ms / 1000)
        except BaseException as interruption:
            _end(process)
            if not isinstance(interruption, subprocess.TimeoutExpired):
                raise
            raise self._failed(
                f"gave no response within {self._timeout_ms} ms; raise timeout.ms, or fix the command"
            ) from None
        if process.returncode:
            last_line = (err.strip().splitlines() or ["nothing on standard error"])[-1]
            raise self._failed(f"exit code {process.returncode}: {last_line[:200]}; fix the command")
        return out

    def _failed(self, why: str) -> RackLocatorFailed:
        return RackLocatorFailed(f"rack locator command: {self._words[0]}: {why}")


def _end(process: subprocess.Popen[str]) -> None:
    """Stop the script and every process it started; these may outlive it and hold its output open."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    # Reading its status takes no time, but for a process that waits for a device.
    end_within(f"process {process.pid} of the rack locator", process.wait)


def _host(broker: Broker) -> str:
    if broker.host is None:
        raise RackLocatorFailed(f"rack locator command: broker {broker.id} has no known host; use another locator")
    if broker.host.startswith("-") or not broker.host.strip():
        # The script would read it as an option.
        raise RackLocatorFailed(
            f"rack locator command: broker {broker.id} has host {broker.host!r}, which is not a host name"
        )
    return broker.host


def _batches(hosts: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (hosts[start : start + size] for start in range(0, len(hosts), size))


def _number(properties: Properties, key: str, default: int) -> int:
    text = properties.get(key, str(default))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 2**31 - 1:
        raise UsageError(f"rack locator command: {key} is {text!r}; it is a whole number of at least 1")
    return int(text)
