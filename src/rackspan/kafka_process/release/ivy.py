"""Downloads Kafka's jars with the Ivy inside PySpark, and in no other way.

Ivy runs with settings and folders of its own, so that a user's Maven or Ivy folder can neither break a download nor be
changed by one. Its repository is Ivy's default for Maven coordinates.
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
"""slf4j-simple: Kafka 4's modules depend on no logger, Kafka 3's on another; with this one both log alike."""

_PATTERN: Final = "[artifact]-[revision](-[classifier]).[ext]"
_SECONDS: Final = 900.0
"""A download of 50 MB takes about 40 s on a fast connection."""


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
    """Download Kafka's server and tools with their dependencies into `lib`; `work` is scratch space of the caller.

    Errors: MissingRequirement with the cause from Ivy's output.
    """
    work.mkdir(parents=True, exist_ok=True)
    (work / "ivysettings.xml").write_text(_SETTINGS)
    (work / "ivy.xml").write_text(_MODULE.format(scala=SCALA_VERSION, kafka=version))
    ended = run_kept(_command(java, ivy, work, lib), _SECONDS)
    if ended.status is None:
        raise MissingRequirement(
            f"Apache Kafka {version} could not be fetched in {_SECONDS:.0f} s; try again on a better line"
        )
    if ended.status != 0:
        raise MissingRequirement(
            f"Apache Kafka {version} could not be fetched: {_cause(ended.output)}; is there a network, and is it a release?"
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


def _cause(output: str) -> str:
    """The line with the cause, from Ivy's pages of progress."""
    lines = [line.strip() for line in output.splitlines()]
    causes = [line for line in lines if any(word in line for word in ("not found", "NOT FOUND", "Exception", "ERROR"))]
    return (causes or [line for line in lines if line] or ["Ivy said nothing"])[0].lstrip(": ")
