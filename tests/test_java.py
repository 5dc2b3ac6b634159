"""Java is found where people put it, and its absence is one line."""

from pathlib import Path

import pytest

from rackspan.errors import MissingRequirement
from rackspan.java import Java, find_java, version_number


def fake_java(folder: Path, version: str) -> Path:
    """A program that says what `java -version` says, on stderr as Java does."""
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    executable.chmod(0o755)
    return executable


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_the_version_is_read_from_what_java_prints(text: str, number: int | None) -> None:
    assert version_number(text) == number


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    home, path = fake_java(tmp_path / "home", "21.0.1"), fake_java(tmp_path / "path", "17.0.2")
    assert find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(path.parent)}) == Java(home, 21)


def test_a_java_home_that_is_too_old_leaves_it_to_the_path(tmp_path: Path) -> None:
    fake_java(tmp_path / "home", "11.0.2")
    path = fake_java(tmp_path / "path", "17.0.2")
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(path.parent)})
    assert found == Java(path, 17)
    assert found.home == tmp_path / "path"


def test_only_an_old_java_says_which_and_what_to_install(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "home", "1.8.0_402")
    with pytest.raises(MissingRequirement, match="Java 17 or newer") as failure:
        find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": ""})
    assert f"{old} is version 8; install a JDK" in str(failure.value)
    assert "\n" not in str(failure.value)


def test_no_java_at_all_says_where_it_was_looked_for() -> None:
    with pytest.raises(MissingRequirement, match="none was found in JAVA_HOME or on the PATH; install a JDK"):
        find_java({"PATH": "/nonexistent"})


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingRequirement, match="bin/java does not start"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
