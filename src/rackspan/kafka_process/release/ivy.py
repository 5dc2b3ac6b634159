"""Fetches Kafka's jars with the Ivy that ships inside PySpark, and in no other way.

Ivy runs with settings and folders of its own: a user's half-filled Maven or Ivy folder can neither break a download nor
be changed by one. Its repository is Ivy's default for Maven coordinates.
"""

import importlib.util
from pathlib import Path
from typing import Final

from rackspan.errors import MissingRequirement
from rackspan.java import Java
from rackspan.kafka_process.kept_process import run_kept
from rackspan.kafka_process.release.versions import SCALA_VERSION, KafkaVersion

_SETTINGS: Final = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""

_MODULE: Final = """\
<ivy-module version="2.0">
  <info organisation="rackspan" module="kafka"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_{scala}" rev="{kafka}" conf="default->default"/>
    <dependency org="org.apache.kafka" name="kafka-tools" rev="{kafka}" conf="default->default"/>
    <dependency org="org.slf4j" name="slf4j-simple" rev="1.7.36" conf="default->default"/>
    <exclude org="org.slf4j" module="slf4j-reload4j"/>
  </dependencies>
</ivy-module>
"""
"""slf4j-simple: Kafka 4's modules name no logger of their own, Kafka 3's another; with this one both log alike."""

_PATTERN: Final = "[artifact]-[revision](-[classifier]).[ext]"
_SECONDS: Final = 900.0
"""About 40 s on a good line; nobody waits longer than this for 50 MB."""


def ivy_jar() -> Path:
    """The Ivy inside the installed PySpark. Errors: MissingRequirement, naming the extra."""
    pyspark = importlib.util.find_spec("pyspark")
    if pyspark is None or pyspark.origin is None:
        raise MissingRequirement(
            'PySpark is not installed, and real Kafka is fetched with the Ivy inside it; pip install "rackspan[spark]"'
        )
    found = sorted((Path(pyspark.origin).parent / "jars").glob("ivy-*.jar"))
    if not found:
        raise MissingRequirement(
            f'PySpark in {Path(pyspark.origin).parent} has no Ivy among its jars; reinstall it: pip install "rackspan[spark]"'
        )
    return found[-1]


def fetch(version: KafkaVersion, java: Java, ivy: Path, work: Path, lib: Path) -> None:
    """Download Kafka's server and tools with all they need into `lib`; `work` is scratch space of the caller.

    Errors: MissingRequirement with Ivy's own last complaint.
    """
    work.mkdir(parents=True, exist_ok=True)
    (work / "ivysettings.xml").write_text(_SETTINGS)
    (work / "ivy.xml").write_text(_MODULE.format(scala=SCALA_VERSION, kafka=version))
    answer = run_kept(_command(java, ivy, work, lib), _SECONDS)
    if answer.status is None:
        raise MissingRequirement(
            f"Apache Kafka {version} could not be fetched in {_SECONDS:.0f} s; try again on a better line"
        )
    if answer.status != 0:
        raise MissingRequirement(
            f"Apache Kafka {version} could not be fetched: {_complaint(answer.output)}; is there a network, and is it a release?"
        )


def _command(java: Java, ivy: Path, work: Path, lib: Path) -> list[str]:
    return [
        str(java.executable),
        f"-Divy.default.ivy.user.dir={work / 'ivy'}",
        *("-jar", str(ivy)),
        *("-settings", str(work / "ivysettings.xml")),
        *("-ivy", str(work / "ivy.xml")),
        *("-retrieve", f"{lib}/{_PATTERN}"),
        *("-confs", "default"),
    ]


def _complaint(output: str) -> str:
    """The line that says why, out of Ivy's pages of progress."""
    lines = [line.strip() for line in output.splitlines()]
    telling = [line for line in lines if any(word in line for word in ("not found", "NOT FOUND", "Exception", "ERROR"))]
    return (telling or [line for line in lines if line] or ["Ivy said nothing"])[0].lstrip(": ")
