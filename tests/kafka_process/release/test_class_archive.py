"""The archive of a release's classes: written by one node as it ends, whole or not at all, and loaded by all later ones."""

import threading
from pathlib import Path

import pytest

from rackspan.java import Java
from rackspan.kafka_process.release import class_archive
from tests.waiting import WITHIN_SECONDS


def write(options: tuple[str, ...], text: str = "classes") -> None:
    """As a Java with these options does when it ends."""
    (option,) = (one for one in options if one.startswith("-XX:ArchiveClassesAtExit="))
    Path(option.partition("=")[2]).write_text(text)


def test_one_start_writes_it_and_later_ones_load_it(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    assert class_archive.options(archive) == ()
    with class_archive.writing(archive) as options:
        write(options)
        assert class_archive.options(archive) == ()
    # Without the second one Java prints a warning where it cannot load the archive.
    assert class_archive.options(archive) == (f"-XX:SharedArchiveFile={archive}", "-Xlog:disable")
    assert archive.read_text() == "classes"
    with class_archive.writing(archive) as options:
        assert options == ()
    assert archive.read_text() == "classes"


def test_a_start_that_fails_leaves_none(tmp_path: Path) -> None:
    def fails() -> None:
        with class_archive.writing(tmp_path / "classes.jsa") as options:
            write(options, "half of the cl")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert [path.name for path in tmp_path.iterdir()] == ["classes.lock"]


def test_a_java_that_writes_none_is_tried_once(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    with class_archive.writing(archive):
        pass
    assert class_archive.options(archive) == ()
    with class_archive.writing(archive) as options:
        assert options == ()


def test_in_a_folder_that_cannot_be_written_nothing_is_archived(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with class_archive.writing(tmp_path / "file" / "classes.jsa") as options:
        assert options == ()


def test_an_archive_that_is_there_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "classes.jsa"
    archive.write_text("classes")
    monkeypatch.setattr(class_archive, "locked", lambda _file: pytest.fail("locked"))
    with class_archive.writing(archive) as options:
        assert options == ()


def test_two_processes_take_turns(tmp_path: Path) -> None:
    archive, second = tmp_path / "classes.jsa", list[tuple[str, ...]]()

    def enter() -> None:
        with class_archive.writing(archive) as options:
            second.append(options)

    other = threading.Thread(target=enter)
    with class_archive.writing(archive) as options:
        other.start()
        other.join(0.3)  # short: it must not go on meanwhile
        assert second == []
        write(options)
    other.join(WITHIN_SECONDS)
    assert second == [()]


def test_another_build_of_java_has_another(tmp_path: Path) -> None:
    java = Path("/usr/bin/java")
    files = {
        class_archive.archive_file(tmp_path / "lib", Java(java, 17, build)) for build in ("17.0.15+6", "17.0.16+1")
    }
    assert len(files) == 2
    assert {file.parent for file in files} == {tmp_path}
