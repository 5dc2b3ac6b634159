"""A real Kafka Streams application: processes of RackApp.java on the published jars, any release since 3.3."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from rackspan.java import find_java
from tests.compat import ivy
from tests.compat.streams_oracle import KAFKA_VERSION
from tests.waiting import WITHIN_SECONDS

_SOURCE = Path(__file__).parent / "java" / "RackApp.java"
BEFORE_RACKS = "3.3.2"
"""The last release line whose consumers could not send their rack (KIP-881 came with 3.4)."""


@dataclass(frozen=True, slots=True)
class LocalTasks:
    """What a process says of itself. `restored`: bytes that its restore consumers have received, by broker; negative ids are bootstrap servers."""

    state: str
    active: frozenset[str]
    standby: frozenset[str]
    restored: Mapping[int, int]


class StreamsProcess:
    """One process of an application, ended with its with-block. `config` is Kafka Streams' own."""

    def __init__(self, folder: Path, config: Mapping[str, str], version: str = KAFKA_VERSION) -> None:
        self._folder = folder / config["client.id"]
        self._config = {"state.dir": str(self._folder / "state"), **config}
        self._version = version
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> "StreamsProcess":
        jars, java = ivy.jars("org.apache.kafka", "kafka-streams", self._version), find_java()
        classes = self._folder.parent / f"classes-{self._version}"
        if not classes.is_dir():
            _compile(java.executable.with_name("javac"), jars, classes)
        self._folder.mkdir()
        properties = self._folder / "app.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in self._config.items()))
        words = (*("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"), "-cp", f"{classes}:{jars}/*", "RackApp")
        self._process = subprocess.Popen(
            [str(java.executable), *words, str(properties)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(self._folder / "log").open("w"),
            text=True,
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def tasks(self) -> LocalTasks:
        """Read from the process itself."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("?\n")
        process.stdin.flush()
        state, active, standby, restored = process.stdout.readline().split()
        by_node = (part.split(":") for part in _ids(restored))
        return LocalTasks(state, _ids(active), _ids(standby), {int(node): int(size) for node, size in by_node})


def _compile(javac: Path, jars: Path, classes: Path) -> None:
    subprocess.run(
        [str(javac), "-d", str(classes), "-cp", f"{jars}/*", str(_SOURCE)], check=True, timeout=WITHIN_SECONDS
    )


def _ids(text: str) -> frozenset[str]:
    return frozenset(text.partition("=")[2].split(",")) - {""}
