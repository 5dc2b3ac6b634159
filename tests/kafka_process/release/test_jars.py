"""A release is in the cache whole, or it is fetched again."""

import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from rackspan import ivy
from rackspan.errors import MissingRequirement
from rackspan.java import Java
from rackspan.kafka_process.release.jars import Fetch, cache_folder, fetch_release, is_complete, resolve_jars
from rackspan.kafka_process.release.versions import KafkaVersion
from tests.waiting import WITHIN_SECONDS

VERSION = KafkaVersion(4, 1, 0)
JAVA = Java(Path("/usr/bin/java"), 17)
NAMES = ("kafka_2.13-4.1.0.jar", "kafka-clients-4.1.0.jar", "kafka-tools-4.1.0.jar")


@pytest.fixture(autouse=True)
def _an_ivy(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(needed_for: str) -> Path:
        assert needed_for == "real Kafka"  # A message about a missing Ivy says so.
        return Path("/ivy.jar")

    monkeypatch.setattr(ivy, "ivy_jar", found)


def test_kafkas_server_and_tools_are_fetched_by_their_coordinates(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[tuple[ivy.Download, tuple[object, ...]]] = []
    monkeypatch.setattr(ivy, "fetch", lambda download, *others: fetched.append((download, others)))
    fetch_release(VERSION, JAVA, Path("/ivy.jar"), Path("/work"), Path("/lib"))
    [(download, others)] = fetched
    assert others == (JAVA, Path("/ivy.jar"), Path("/work"), Path("/lib"))
    assert (download.name, download.seconds) == ("Apache Kafka 4.1.0", 900)
    assert download.too_slow == "try again on a better line"
    for part in (
        'org="org.apache.kafka" name="kafka_2.13" rev="4.1.0"',
        'org="org.apache.kafka" name="kafka-tools" rev="4.1.0"',
        'name="slf4j-simple"',
        'module="slf4j-reload4j"',
    ):
        assert part in download.dependencies


def fetch(names: tuple[str, ...] = NAMES, calls: list[str] | None = None) -> Fetch:
    """An Ivy that brings the jars `names`, each a true zip file."""

    def bring(version: KafkaVersion, java: Java, ivy: Path, work: Path, lib: Path) -> None:
        if calls is not None:
            calls.append(str(version))
        # What Ivy keeps while it works goes with the folder of the download.
        assert work.parent == lib.parent.parent
        lib.mkdir(parents=True)
        for name in names:
            with zipfile.ZipFile(lib / name, "w") as jar:
                jar.writestr("META-INF/MANIFEST.MF", name)

    return bring


def resolve(cache: Path, fetch: Fetch, progress: Callable[[str], None] | None = None) -> Path:
    return resolve_jars(VERSION, progress, cache=cache, java=JAVA, fetch=fetch)


def test_the_second_time_nothing_is_fetched(tmp_path: Path) -> None:
    calls: list[str] = []
    progress: list[str] = []
    cache = tmp_path / "a" / "cache"
    first = resolve(cache, fetch(calls=calls), progress.append)
    assert resolve(cache, fetch(calls=calls), progress.append) == first == cache / "4.1.0" / "lib"
    assert calls == ["4.1.0"]
    assert progress == [f"fetching Apache Kafka 4.1.0 into {cache / '4.1.0'} (50 MB, once)"]
    assert sorted(jar.name for jar in first.iterdir()) == sorted(NAMES)


def test_a_jar_cut_short_in_the_cache_is_fetched_again(tmp_path: Path) -> None:
    lib = resolve(tmp_path, fetch())
    (lib / NAMES[0]).write_bytes(b"PK")
    assert not is_complete(tmp_path / "4.1.0")
    resolve(tmp_path, fetch())
    assert is_complete(tmp_path / "4.1.0")


@pytest.mark.parametrize("missing", NAMES)
def test_a_download_without_one_of_the_three_is_never_kept(tmp_path: Path, missing: str) -> None:
    with pytest.raises(MissingRequirement, match=f"incomplete.*{missing}"):
        resolve(tmp_path, fetch(tuple(name for name in NAMES if name != missing)))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["4.1.0.lock"]


def test_a_jar_that_is_no_zip_is_never_kept(tmp_path: Path) -> None:
    def bring(version: KafkaVersion, java: Java, ivy: Path, work: Path, lib: Path) -> None:
        fetch()(version, java, ivy, work, lib)
        (lib / "scala-library.jar").write_text("<html>this network wants you to log in</html>")

    with pytest.raises(MissingRequirement, match=r"incomplete \(scala-library.jar\)"):
        resolve(tmp_path, bring)
    assert not (tmp_path / "4.1.0").exists()


def test_what_a_killed_download_left_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / ".4.1.0-abandoned" / "kafka" / "lib").mkdir(parents=True)
    resolve(tmp_path, fetch())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["4.1.0", "4.1.0.lock"]


def test_two_at_once_fetch_once(tmp_path: Path) -> None:
    calls: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    def slow(version: KafkaVersion, java: Java, ivy: Path, work: Path, lib: Path) -> None:
        begun.set()
        assert go_on.wait(WITHIN_SECONDS)
        fetch(calls=calls)(version, java, ivy, work, lib)

    first = threading.Thread(target=resolve, args=(tmp_path, slow))
    second = threading.Thread(target=resolve, args=(tmp_path, fetch(calls=calls)))
    first.start()
    assert begun.wait(WITHIN_SECONDS)
    second.start()
    go_on.set()
    first.join(WITHIN_SECONDS)
    second.join(WITHIN_SECONDS)
    assert calls == ["4.1.0"]
    assert is_complete(tmp_path / "4.1.0")


def test_the_cache_is_where_the_desktop_says(tmp_path: Path) -> None:
    assert cache_folder({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "rackspan" / "kafka"
    assert cache_folder({}) == Path.home() / ".cache" / "rackspan" / "kafka"
