"""The Java command lines of one Kafka release: its server, its format tool, its console tools."""

import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rackspan.errors import KafkaProcessFailed
from rackspan.java import Java
from rackspan.kafka_process.kept_process import run_kept

SERVER: Final = "kafka.Kafka"
STORAGE_TOOL: Final = "kafka.tools.StorageTool"

_LEAN: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Djava.awt.headless=true")
"""One collector thread and the quick compiler: 330 MB and seconds a broker, where Kafka's own flags ask for 1 GB."""

_SIMPLE_LOGGER: Final = "-Dorg.slf4j.simpleLogger"


@dataclass(frozen=True, slots=True)
class KafkaRuntime:
    """A Java and the `lib` folder of a Kafka release."""

    java: Java
    lib: Path
    heap: str = "256m"

    def command(self, main_class: str, *arguments: str, log_level: str = "info") -> list[str]:
        return [
            str(self.java.executable),
            f"-Xmx{self.heap}",
            *_LEAN,
            f"{_SIMPLE_LOGGER}.defaultLogLevel={log_level}",
            f"{_SIMPLE_LOGGER}.showDateTime=true",
            f"{_SIMPLE_LOGGER}.dateTimeFormat=HH:mm:ss.SSS",
            *("-cp", f"{self.lib}/*"),
            main_class,
            *arguments,
        ]

    def run_tool(self, main_class: str, *arguments: str, seconds: float = 60.0) -> str:
        """What one of Kafka's console tools prints, its errors included. Errors: KafkaProcessFailed with the line that says why."""
        answer = run_kept(self.command(main_class, *arguments, log_level="error"), seconds)
        if answer.status is None:
            raise KafkaProcessFailed(
                f"{main_class} did not end within {seconds:.0f} s; is the cluster up?", answer.output
            )
        if answer.status != 0:
            lines = [line.strip() for line in answer.output.splitlines() if line.strip()] or ["it said nothing"]
            said = next((line for line in lines if "Exception" in line), lines[0])
            raise KafkaProcessFailed(f"{main_class} ended with status {answer.status}: {said}", answer.output)
        return answer.output


def random_cluster_id() -> str:
    """22 characters of base64, as Kafka makes them, but never with a leading dash, which its tool takes for an option."""
    while True:
        cluster_id = urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        if not cluster_id.startswith("-"):
            return cluster_id
