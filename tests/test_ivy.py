"""Ivy runs isolated from the user's folders, and its error is reported in one line."""

from pathlib import Path

import pytest

from rackspan import ivy
from rackspan.errors import MissingRequirement
from rackspan.java import Java
from rackspan.kafka_process.release.jars import fetch_release
from rackspan.kafka_process.release.versions import KafkaVersion

VERSION = KafkaVersion(4, 1, 0)


def fake_java(folder: Path, script: str) -> Java:
    executable = folder / "java"
    executable.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {folder}/arguments\n{script}\n')
    executable.chmod(0o755)
    return Java(executable, 17)


def test_neither_settings_nor_folders_of_the_user_are_touched(tmp_path: Path) -> None:
    fetch_release(VERSION, fake_java(tmp_path, "exit 0"), Path("/ivy.jar"), tmp_path / "work", tmp_path / "lib")
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert f"-Divy.default.ivy.user.dir={tmp_path}/work/ivy" in arguments
    assert arguments[arguments.index("-settings") + 1] == f"{tmp_path}/work/ivysettings.xml"
    required = (tmp_path / "work" / "ivy.xml").read_text()
    assert 'name="kafka_2.13" rev="4.1.0"' in required
    assert 'name="kafka-tools" rev="4.1.0"' in required


def test_a_release_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    java = fake_java(
        tmp_path, 'echo "downloading"; echo ":: org.apache.kafka#kafka_2.13;4.1.0: not found"; echo; exit 1'
    )
    with pytest.raises(MissingRequirement, match=r"org\.apache\.kafka#kafka_2\.13;4\.1\.0: not found") as failure:
        fetch_release(VERSION, java, Path("/ivy.jar"), tmp_path / "work", tmp_path / "lib")
    assert "\n" not in str(failure.value)


@pytest.fixture
def no_pyspark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Neither PySpark nor a jar kept from before; returns the cache."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "cache" / "rackspan" / "ivy"


def fake_maven(folder: Path, script: str) -> None:
    maven = folder / "mvn"
    maven.write_text(
        f"#!/bin/sh\nfor word; do case $word in -DoutputDirectory=*) out=${{word#*=}};; esac; done\n{script}\n"
    )
    maven.chmod(0o755)


def test_without_pyspark_maven_downloads_ivy_once(tmp_path: Path, no_pyspark: Path) -> None:
    fake_maven(tmp_path, 'echo "$3" > "$out/ivy-2.5.3.jar"; exec 1>&-; /bin/rm "$0"')
    jar = ivy.ivy_jar("real Kafka")
    assert jar == no_pyspark / "ivy-2.5.3.jar"
    assert jar.read_text() == "-Dartifact=org.apache.ivy:ivy:2.5.3\n"
    assert ivy.ivy_jar("real Kafka") == jar


def test_a_download_of_ivy_that_fails_leaves_nothing(tmp_path: Path, no_pyspark: Path) -> None:
    fake_maven(
        tmp_path, 'echo half > "$out/ivy-2.5.3.jar"; echo "[ERROR] Could not resolve org.apache.ivy:ivy"; exit 1'
    )
    with pytest.raises(
        MissingRequirement, match=r"Maven could not download org\.apache\.ivy:ivy:2\.5\.3: \[ERROR\]"
    ) as failure:
        ivy.ivy_jar("real Kafka")
    assert "\n" not in str(failure.value)
    assert not list(no_pyspark.iterdir())


def test_without_pyspark_and_maven_both_are_named(no_pyspark: Path) -> None:
    with pytest.raises(MissingRequirement, match=r"apt install maven.*pip install '\.\[spark\]' in a checkout"):
        ivy.ivy_jar("real Kafka")
