"""Downloads jars with Ivy, and where they are kept. Ivy itself is PySpark's, or Maven downloads it.

Ivy runs with settings and folders of its own, so that a user's Maven or Ivy folder can neither break a download nor be
changed by one. Its repository is Ivy's default for Maven coordinates.
"""

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rackspan.child_process.kept_process import run_kept
from rackspan.errors import MissingRequirement, how_to_install
from rackspan.java import Java

_SETTINGS: Final = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""

_MODULE: Final = """\
<ivy-module version="2.0">
  <info organisation="rackspan" module="download"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""

_IVY_VERSION: Final = "2.5.3"
"""As in PySpark 4.0 to 4.2."""

_IVY: Final = f"org.apache.ivy:ivy:{_IVY_VERSION}"
_IVY_FILE: Final = f"ivy-{_IVY_VERSION}.jar"
_IVY_SECONDS: Final = 300.0
"""Maven fetches its own plug-in too at its first use."""

_PATTERN: Final = "[artifact]-[revision](-[classifier]).[ext]"


@dataclass(frozen=True, slots=True)
class Download:
    """The artifacts to fetch. `dependencies` are the dependency and exclude elements of an ivy.xml."""

    name: str
    """As messages name it: Apache Kafka 4.1.0."""
    dependencies: str
    seconds: float
    """After these the download is given up."""
    too_slow: str = "try again"
    failed: str = "is there a network?"
    """How the messages about the two end."""


def ivy_jar(needed_for: str) -> Path:
    """Ivy: the one downloaded before, the one inside the installed PySpark, or else downloaded by Maven.

    Errors: MissingRequirement, naming what to install.
    """
    kept = cache_folder("ivy") / _IVY_FILE
    if kept.exists():
        return kept
    pyspark = importlib.util.find_spec("pyspark")
    if pyspark is not None and pyspark.origin is not None:
        found = sorted((Path(pyspark.origin).parent / "jars").glob("ivy-*.jar"))
        if found:
            return found[-1]
    maven = shutil.which("mvn")
    if maven is None:
        raise MissingRequirement(
            f"{needed_for} is fetched with Apache Ivy, and neither Maven, which downloads it, nor PySpark, which has it, is "
            f"installed; install Maven (Debian, Ubuntu: apt install maven; macOS: brew install maven), or {how_to_install('spark')}"
        )
    _download_ivy(maven, kept)
    return kept


def _download_ivy(maven: str, kept: Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".ivy-", dir=kept.parent) as scratch:
        command = [maven, "--batch-mode", "dependency:copy", f"-Dartifact={_IVY}", f"-DoutputDirectory={scratch}"]
        ended = run_kept(command, _IVY_SECONDS)
        if ended.status != 0:
            cause = "it took too long" if ended.status is None else _cause(ended.output)
            raise MissingRequirement(f"Maven could not download {_IVY}: {cause}; is there a network?")
        # Complete under its name, or absent.
        (Path(scratch) / kept.name).rename(kept)


def fetch(download: Download, java: Java, ivy: Path, work: Path, lib: Path) -> None:
    """Download the jars with all that they depend on into `lib`; `work` is scratch space of the caller.

    Errors: MissingRequirement with the cause from Ivy's output.
    """
    work.mkdir(parents=True, exist_ok=True)
    (work / "ivysettings.xml").write_text(_SETTINGS)
    (work / "ivy.xml").write_text(_MODULE.format(dependencies=download.dependencies))
    ended = run_kept(_command(java, ivy, work, lib), download.seconds)
    if ended.status is None:
        raise MissingRequirement(
            f"{download.name} could not be fetched in {download.seconds:.0f} s; {download.too_slow}"
        )
    if ended.status != 0:
        raise MissingRequirement(f"{download.name} could not be fetched: {_cause(ended.output)}; {download.failed}")


def cache_folder(name: str, environ: Mapping[str, str] | None = None) -> Path:
    """Where jars of one kind are kept: XDG_CACHE_HOME or ~/.cache, then rackspan/`name`."""
    given = (os.environ if environ is None else environ).get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "rackspan" / name


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
    words = ("Server access error", "not found", "NOT FOUND", "Exception", "ERROR")
    causes = [line for line in lines if any(word in line for word in words)]
    return (causes or [line for line in lines if line] or ["Ivy said nothing"])[0].lstrip(": ")
