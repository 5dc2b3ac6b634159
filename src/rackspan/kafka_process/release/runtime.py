"""The Java command lines of one Kafka release: its server, its format tool, its console tools."""

import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rackspan.child_process.kept_process import run_kept
from rackspan.errors import KafkaProcessFailed
from rackspan.java import Java
from rackspan.kafka_process.release import class_archive

SERVER: Final = "kafka.Kafka"
STORAGE_TOOL: Final = "kafka.tools.StorageTool"

_LEAN: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Djava.awt.headless=true")
"""One collector thread and the fast compiler: 330 MB and seconds a broker, where Kafka's own flags use 1 GB."""

_SIMPLE_LOGGER: Final = "-Dorg.slf4j.simpleLogger"


@dataclass(frozen=True, slots=True)
class KafkaRuntime:
    """A Java and the `lib` folder of a Kafka release."""

    java: Java
    lib: Path
    heap: str = "256m"
    java_options: tuple[str, ...] | None = None
    """In place of those that load the class archive."""

    @property
    def class_archive(self) -> Path:
        return class_archive.archive_file(self.lib, self.java)

    def command(self, main_class: str, *arguments: str, log_level: str = "info") -> list[str]:
        """The command line of one main class."""
        return [
            str(self.java.executable),
            f"-Xmx{self.heap}",
            *_LEAN,
            *(class_archive.options(self.class_archive) if self.java_options is None else self.java_options),
            f"{_SIMPLE_LOGGER}.defaultLogLevel={log_level}",
            f"{_SIMPLE_LOGGER}.showDateTime=true",
            f"{_SIMPLE_LOGGER}.dateTimeFormat=HH:mm:ss.SSS",
            *("-cp", f"{self.lib}/*"),
            main_class,
            *arguments,
        ]

    def run_tool(self, main_class: str, *arguments: str, seconds: float = 60.0) -> str:
        """The output of one of Kafka's console tools, with stderr. Errors: KafkaProcessFailed with the line of the cause."""
        ended = run_kept(self.command(main_class, *arguments, log_level="error"), seconds)
        if ended.status is None:
            raise KafkaProcessFailed(
                f"{main_class} did not end within {seconds:.0f} s; is the cluster up?", ended.output
            )
        if ended.status != 0:
            lines = [line.strip() for line in ended.output.splitlines() if line.strip()] or ["it said nothing"]
            cause = next((line for line in lines if "Exception" in line), lines[0])
            raise KafkaProcessFailed(f"{main_class} ended with status {ended.status}: {cause}", ended.output)
        return ended.output


def random_uuid() -> str:
    """22 characters of base64, as Kafka creates them, without a leading dash, which its tool reads as an option."""
    while True:
        cluster_id = urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        if not cluster_id.startswith("-"):
            return cluster_id
