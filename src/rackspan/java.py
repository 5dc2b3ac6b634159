"""Finds the Java that Spark and real Kafka run on. Everything else works without one.

Order: `JAVA_HOME`, then the first `java` on the PATH; the first one that is new enough is used.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rackspan.errors import MissingRequirement

LEAST_VERSION: Final = 17
"""Spark 4 and Kafka 4 brokers are both compiled for Java 17."""

_VERSION_SECONDS: Final = 60.0
"""How long `java -version` may take; it takes a fraction of a second unless the machine is overloaded."""

_HOW_TO_INSTALL: Final = (
    "install a JDK (Debian, Ubuntu: apt install openjdk-17-jdk-headless; macOS: brew install openjdk@17) "
    "or point JAVA_HOME at one"
)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation, its version and what it prints of its build. `home` is the value for JAVA_HOME."""

    executable: Path
    version: int
    build: str = field(default="", compare=False)

    @property
    def home(self) -> Path:
        return self.executable.resolve().parent.parent


def find_java(environ: Mapping[str, str] | None = None, least: int = LEAST_VERSION) -> Java:
    """The first Java of at least version `least`. Errors: MissingRequirement, naming the ones that were tried."""
    refused = []
    for executable in _candidates(os.environ if environ is None else environ):
        build = _build(executable)
        version = version_number(build)
        if version is not None and version >= least:
            return Java(executable, version, build)
        refused.append(f"{executable} {'does not start' if version is None else f'is version {version}'}")
    what = "; ".join(refused) or "none was found in JAVA_HOME or on the PATH"
    raise MissingRequirement(f"Java {least} or newer is needed for Spark and real Kafka, but {what}; {_HOW_TO_INSTALL}")


def version_number(text: str) -> int | None:
    """The feature release in what `java -version` prints: 17 for "17.0.15", 8 for "1.8.0_402"."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    if environ.get("JAVA_HOME"):
        yield Path(environ["JAVA_HOME"]) / "bin" / "java"
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield Path(on_path)


def _build(executable: Path) -> str:
    """What `java -version` prints, empty where it does not start."""
    try:
        process = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=_VERSION_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stderr + process.stdout
