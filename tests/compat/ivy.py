"""Jars that tests compare with, by Maven coordinates: resolved by `rackspan.ivy`, and kept under the user's cache folder."""

import shutil
import tempfile
from pathlib import Path
from typing import Final

from rackspan.ivy import Download, cache_folder, fetch, ivy_jar
from rackspan.java import find_java

RESOLVE_SECONDS: Final = 300


def java() -> str | None:
    """The `java` on the path, None without one."""
    return shutil.which("java")


def jars(organisation: str, module: str, version: str) -> Path:
    """A folder with the module's jars and all they need. Downloaded once; an unfinished download is never used."""
    return _kept(f"{module}-{version}", _dependency(f"{organisation}:{module}:{version}", 'conf="default->default"'))


def exact_jars(name: str, *coordinates: str) -> Path:
    """A folder of the jars named as organisation:module:version, and of nothing that they need."""
    settings = 'transitive="false" conf="default->master"'
    return _kept(name, "".join(_dependency(coordinate, settings) for coordinate in coordinates))


def _dependency(coordinate: str, settings: str) -> str:
    organisation, module, version = coordinate.split(":")
    return f'<dependency org="{organisation}" name="{module}" rev="{version}" {settings}/>'


def _kept(name: str, dependencies: str) -> Path:
    folder = cache_folder("oracle") / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            work, found = Path(scratch, "work"), Path(scratch, "lib")
            fetch(Download(name, dependencies, RESOLVE_SECONDS), find_java(), ivy_jar(name), work, found)
            _publish(found, folder)
    return folder


def _publish(found: Path, folder: Path) -> None:
    try:
        found.rename(folder)
    except OSError:
        # Another process was first; its jars are the same.
        if not folder.is_dir():
            raise
