"""One Kafka node (broker, controller or both): its folder, its log and, while it runs, its process."""

import logging
import re
import shutil
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rackspan.child_process.kept_process import KeptProcess
from rackspan.errors import KafkaProcessFailed
from rackspan.interrupts import shortened
from rackspan.kafka_process import node_config
from rackspan.kafka_process.data_folder import META_PROPERTIES
from rackspan.kafka_process.release.runtime import SERVER, STORAGE_TOOL, KafkaRuntime, random_uuid
from rackspan.kafka_process.topology import KafkaNode

log = logging.getLogger(__name__)

_STARTED: Final = b"Kafka Server started"
"""Logged at the end of start-up; for a broker this is after the controller has unfenced it (BrokerServer.startup)."""

_TAIL_LINES: Final = 40
_STOP_SECONDS: Final = 15.0
"""For a controlled shutdown. A node without controllers would wait for minutes."""


class NodeProcess:
    """A node that can be started, stopped, killed and started again on the same data and ports."""

    def __init__(self, node: KafkaNode, folder: Path, settings: Mapping[str, str], runtime: KafkaRuntime) -> None:
        self.node = node
        self.log_file = folder / f"node-{node.id}.log"
        self._data_folder = folder / f"node-{node.id}"
        self._config_file = folder / f"node-{node.id}.properties"
        self._config_file.write_text(node_config.text(settings))
        self._runtime = runtime
        self._process: KeptProcess | None = None
        self._started_at = 0
        """The offset in the log at which the current run begins."""

    @property
    def pid(self) -> int | None:
        """The id of the Java process, None while there is none."""
        return self._process.pid if self._process is not None and self.is_running else None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.exit_status is None

    def begin_format(self, cluster_id: str) -> None:
        """Begin to format the data folder; a formatted folder stays as it is."""
        words = ("format", "--ignore-formatted", "-t", cluster_id, "-c", str(self._config_file))
        self._launch(self._runtime.command(STORAGE_TOOL, *words))

    def end_format(self, seconds: float) -> None:
        assert self._process is not None  # noqa: S101 - begin_format came first
        status = self._process.wait(seconds)
        if status != 0:
            raise self._failure("could not prepare its data folder")
        self._process.kill()

    def copy_format(self, formatted: "NodeProcess") -> None:
        """Format a new data folder as that of a node with the same roles was, with ids of its own."""
        # The ids are written last: a folder without them is not formatted.
        shutil.copytree(formatted._data_folder, self._data_folder, ignore=shutil.ignore_patterns(META_PROPERTIES))
        text = formatted._data_folder.joinpath(META_PROPERTIES).read_text()
        for name, value in (("node.id", str(self.node.id)), ("directory.id", random_uuid())):
            text = re.sub(rf"(?m)^{re.escape(name)}=.*", f"{name}={value}", text)
        self._data_folder.joinpath(META_PROPERTIES).write_text(text)

    def begin_start(self) -> None:
        if not self.is_running:
            self._launch(self._runtime.command(SERVER, str(self._config_file)))

    def is_ready(self) -> bool:
        """Whether start-up is finished. Errors: KafkaProcessFailed when the process has ended."""
        if self._process is None or self._process.exit_status is not None:
            raise self._failure("ended while it started")
        return _STARTED in self._log()

    def begin_stop(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def end_stop(self, deadline: float) -> bool:
        """Wait until `deadline` (time.monotonic) for the end of a controlled shutdown, then kill the process.

        Returns whether Java came to the end of its shutdown: then its exit status is that of SIGTERM.
        """
        status = None if self._process is None else self._process.wait(max(0.0, deadline - time.monotonic()))
        if status is None and self._process is not None:
            log.warning("node %d did not end its controlled shutdown in time and is killed", self.node.id)
        self.kill()
        return status == 128 + signal.SIGTERM

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def freeze(self) -> None:
        if self._process is not None:
            self._process.freeze()

    def thaw(self) -> None:
        if self._process is not None:
            self._process.thaw()

    def log_tail(self, lines: int = _TAIL_LINES) -> str:
        """The last lines of the current run's log."""
        return "\n".join(self._log().decode(errors="replace").splitlines()[-lines:])

    def _launch(self, command: list[str]) -> None:
        self.kill()
        self._started_at = self.log_file.stat().st_size if self.log_file.exists() else 0
        self._process = KeptProcess(command, self.log_file)

    def _log(self) -> bytes:
        with self.log_file.open("rb") as log:
            log.seek(self._started_at)
            return log.read()

    def _failure(self, what: str) -> KafkaProcessFailed:
        role = "broker" if self.node.is_broker else "controller"
        cause = _line_with_cause(self._log().decode(errors="replace"))
        return KafkaProcessFailed(f"{role} {self.node.id} {what}: {cause}", self.log_tail())


def stop_deadline() -> float:
    """The time (time.monotonic) at which nodes that begin to stop now are killed."""
    return time.monotonic() + shortened(_STOP_SECONDS)


def _line_with_cause(log: str) -> str:
    """The last exception or error of a node's log, not the last line of its stack, nor one of the shutdown that follows."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    serious = [line for line in lines if " INFO " not in line and " WARN " not in line and not line.startswith("at ")]
    causes = [line for line in serious if "Exception" in line or "ERROR" in line]
    return (causes or lines or ["its log is empty"])[-1]
