"""The jars of Delta Lake: one build for each Spark, kept complete or not at all."""

import re
import zipfile
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rackspan import ivy
from rackspan.errors import MissingRequirement
from rackspan.java import Java, find_java
from rackspan.pipeline.spark.jars import DELTA, artifact, delta_jars, fetch_by_ivy


@pytest.mark.parametrize(
    ("pyspark", "name"),
    [("4.0.1", "delta-spark_4.0_2.13"), ("4.1.4", "delta-spark_4.1_2.13"), ("4.2.0.dev1", "delta-spark_4.2_2.13")],
)
def test_each_spark_has_a_build_of_its_own(pyspark: str, name: str) -> None:
    assert artifact(pyspark) == name


@pytest.mark.parametrize("pyspark", ["4.3.0", "3.5.9", "5.0.0"])
def test_a_spark_without_a_build_is_refused_in_one_line(pyspark: str) -> None:
    with pytest.raises(
        MissingRequirement, match=rf"^pyspark {pyspark} is installed, and Delta Lake .* has no build"
    ) as caught:
        artifact(pyspark)
    assert "\n" not in str(caught.value)


def jar(name: str, scratch: Path) -> None:
    with zipfile.ZipFile(scratch / "lib" / f"{name}-{DELTA}.jar", "w") as archive:
        archive.writestr("a", "b")


JAVA = Java(Path("/a/jdk/bin/java"), 17)


def test_jars_are_fetched_once_and_nothing_is_kept_of_a_download_that_broke(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fetched: list[str] = []

    def broken(name: str, java: Java, scratch: Path) -> None:
        (scratch / "lib").mkdir()
        (scratch / "lib" / f"{name}-{DELTA}.jar").write_bytes(b"half")

    def whole(name: str, java: Java, scratch: Path) -> None:
        fetched.append(name)
        (scratch / "lib").mkdir()
        jar(name, scratch)

    with pytest.raises(MissingRequirement, match=r"came incomplete .*; try again, nothing was kept"):
        delta_jars(JAVA, cache=tmp_path, fetch=broken)
    assert list(tmp_path.iterdir()) == []
    first = delta_jars(JAVA, cache=tmp_path, fetch=whole)
    assert [one.name for one in first] == [f"{artifact(version('pyspark'))}-{DELTA}.jar"]
    assert delta_jars(JAVA, cache=tmp_path, fetch=whole) == first
    assert len(fetched) == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("fetching Delta Lake")) == ("", 2)


def test_of_two_processes_that_fetch_at_once_both_have_the_jars_of_the_first(tmp_path: Path) -> None:
    def raced(name: str, java: Java, scratch: Path) -> None:
        (scratch / "lib").mkdir()
        jar(name, scratch)
        other = tmp_path / f"{name}-{DELTA}"
        other.mkdir()
        (other / "of-the-other.jar").touch()

    found = delta_jars(JAVA, cache=tmp_path, fetch=raced)
    assert [one.name for one in found] == ["of-the-other.jar"]
    assert list(tmp_path.iterdir()) == [found[0].parent]


def test_delta_lakes_own_jars_are_fetched_and_nothing_that_spark_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[tuple[ivy.Download, tuple[object, ...]]] = []
    monkeypatch.setattr(ivy, "ivy_jar", lambda _what: Path("ivy.jar"))
    monkeypatch.setattr(ivy, "fetch", lambda download, *more: fetched.append((download, more)))
    fetch_by_ivy("delta-spark_4.1_2.13", JAVA, tmp_path)
    [(download, more)] = fetched
    assert more == (JAVA, Path("ivy.jar"), tmp_path / "work", tmp_path / "lib")
    dependencies = ElementTree.fromstring(f"<all>{download.dependencies}</all>")  # noqa: S314 - made above
    [wanted] = dependencies.iter("dependency")
    assert (wanted.get("org"), wanted.get("name"), wanted.get("rev")) == ("io.delta", "delta-spark_4.1_2.13", DELTA)
    [excluded] = dependencies.iter("exclude")
    others = ("io.delta", "io.unitycatalog", "org.apache.spark", "io.deltas", "com.fasterxml.jackson.core")
    assert [one for one in others if not re.match(str(excluded.get("org")), one)] == ["io.delta", "io.unitycatalog"]


@pytest.mark.java
def test_without_a_network_one_line_says_which_folder_to_copy_and_with_that_folder_none_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1")
    with pytest.raises(MissingRequirement) as caught:
        delta_jars(find_java())
    assert re.fullmatch(
        rf"Delta Lake {DELTA} could not be fetched: .+; "
        rf"without a network copy {tmp_path}/rackspan/delta from a machine that has one",
        str(caught.value),
    )
    copied = tmp_path / "rackspan" / "delta" / f"{artifact(version('pyspark'))}-{DELTA}"
    assert list(copied.parent.iterdir()) == []
    copied.mkdir()
    (copied / "delta.jar").touch()
    assert delta_jars(find_java()) == [copied / "delta.jar"]
