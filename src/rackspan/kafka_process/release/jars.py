"""The jars of one Kafka release in the user's cache folder: complete, or absent.

    <cache>/rackspan/kafka/4.1.0/lib/*.jar
    <cache>/rackspan/kafka/4.1.0/manifest.json      names and sizes, written last

A download goes to a folder of its own and is renamed when it is complete, so a broken one never becomes a cache. Two
processes that need the same release take turns; the second one uses the first one's download.
"""

import fcntl
import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rackspan import ivy
from rackspan.errors import MissingRequirement
from rackspan.java import Java, find_java
from rackspan.kafka_process.release.versions import SCALA_VERSION, KafkaVersion

ProgressCallback = Callable[[str], None]
"""Called with each line of progress."""

Fetch = Callable[[KafkaVersion, Java, Path, Path, Path], None]

_MANIFEST: Final = "manifest.json"

_DEPENDENCIES: Final = """\
    <dependency org="org.apache.kafka" name="kafka_{scala}" rev="{kafka}" conf="default->default"/>
    <dependency org="org.apache.kafka" name="kafka-tools" rev="{kafka}" conf="default->default"/>
    <dependency org="org.slf4j" name="slf4j-simple" rev="1.7.36" conf="default->default"/>
    <exclude org="org.slf4j" module="slf4j-reload4j"/>"""
"""slf4j-simple: Kafka 4's modules depend on no logger, Kafka 3's on another; with this one both log alike."""

_SECONDS: Final = 900.0
"""A download of 50 MB takes about 40 s on a fast connection."""


def fetch_release(version: KafkaVersion, java: Java, ivy_jar: Path, work: Path, lib: Path) -> None:
    """Download Kafka's server and tools with their dependencies into `lib`. Errors: as of ivy.fetch."""
    download = ivy.Download(
        name=f"Apache Kafka {version}",
        dependencies=_DEPENDENCIES.format(scala=SCALA_VERSION, kafka=version),
        seconds=_SECONDS,
        too_slow="try again on a better line",
        failed="is there a network, and is it a release?",
    )
    ivy.fetch(download, java, ivy_jar, work, lib)


def resolve_jars(
    version: KafkaVersion,
    progress: ProgressCallback | None = None,
    *,
    cache: Path | None = None,
    java: Java | None = None,
    fetch: Fetch = fetch_release,
) -> Path:
    """The `lib` folder of a Kafka release, downloaded first if necessary (50 MB, about 40 s).

    Errors: MissingRequirement when Java, Ivy or the network are missing.
    """
    home = (cache or cache_folder()) / str(version)
    if is_complete(home):
        return home / "lib"
    home.parent.mkdir(parents=True, exist_ok=True)
    with locked(home.parent / f"{version}.lock"):
        if not is_complete(home):
            if progress is not None:
                progress(f"fetching Apache Kafka {version} into {home} (50 MB, once)")
            _download(version, home, java or find_java(), fetch)
    return home / "lib"


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Where jars are kept: XDG_CACHE_HOME or ~/.cache, then rackspan/kafka."""
    return ivy.cache_folder("kafka", environ)


def is_complete(home: Path) -> bool:
    """Whether every jar of the manifest exists with its full size."""
    try:
        sizes: dict[str, int] = json.loads((home / _MANIFEST).read_text())
        return bool(sizes) and all((home / "lib" / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


def _download(version: KafkaVersion, home: Path, java: Java, fetch: Fetch) -> None:
    for abandoned in home.parent.glob(f".{version}-*"):
        shutil.rmtree(abandoned, ignore_errors=True)  # We hold the lock, so the process that began it is dead.
    with tempfile.TemporaryDirectory(prefix=f".{version}-", dir=home.parent) as scratch:
        staging = Path(scratch) / "kafka"
        fetch(version, java, ivy.ivy_jar("real Kafka"), Path(scratch) / "work", staging / "lib")
        _write_manifest(version, staging)
        # An existing folder is incomplete, otherwise there would be no download.
        shutil.rmtree(home, ignore_errors=True)
        staging.rename(home)


def _write_manifest(version: KafkaVersion, staging: Path) -> None:
    jars = sorted((staging / "lib").glob("*.jar"))
    broken = [jar.name for jar in jars if not zipfile.is_zipfile(jar)]
    needed = {f"kafka_{SCALA_VERSION}-{version}.jar", f"kafka-clients-{version}.jar", f"kafka-tools-{version}.jar"}
    missing = needed - {jar.name for jar in jars}
    if broken or missing:
        raise MissingRequirement(
            f"Apache Kafka {version} came incomplete ({', '.join([*broken, *sorted(missing)])}); try again, nothing was kept"
        )
    (staging / _MANIFEST).write_text(json.dumps({jar.name: jar.stat().st_size for jar in jars}, indent=1))


@contextmanager
def locked(lock_file: Path) -> Iterator[None]:
    """One process at a time; the kernel releases the lock when its holder dies."""
    with lock_file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
