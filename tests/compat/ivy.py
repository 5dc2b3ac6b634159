"""Jars by Maven coordinates, resolved by the Ivy that ships inside PySpark, and kept under the user's cache folder."""

import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

RESOLVE_SECONDS: Final = 300


def java() -> str | None:
    """The `java` on the path, None without one."""
    return shutil.which("java")


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "rackspan" / "oracle"


def jars(organisation: str, module: str, version: str) -> Path:
    """A folder with the module's jars and all they need. Downloaded once; an unfinished download is never used."""
    folder = cache_folder() / f"{module}-{version}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            _publish(_resolve(Path(scratch), organisation, module, version), folder)
    return folder


def _resolve(scratch: Path, organisation: str, module: str, version: str) -> Path:
    found = scratch / "lib"
    done = subprocess.run(
        [
            *(java() or "java", f"-Divy.default.ivy.user.dir={scratch / 'ivy'}", "-jar", str(_ivy())),
            *("-dependency", organisation, module, version),
            *("-retrieve", f"{found}/[artifact]-[revision](-[classifier]).[ext]", "-confs", "default"),
        ],
        capture_output=True,
        text=True,
        timeout=RESOLVE_SECONDS,
        check=False,
    )
    if done.returncode != 0 or not list(found.glob("*.jar")):
        raise RuntimeError(
            f"{organisation}:{module}:{version} could not be resolved:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return found


def _publish(found: Path, folder: Path) -> None:
    try:
        found.rename(folder)
    except OSError:
        # Another process was first; its jars are the same.
        if not folder.is_dir():
            raise


def _ivy() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RuntimeError("PySpark is not installed; run make env")
    return next((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))
