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
    return _kept(f"{module}-{version}", ["-dependency", organisation, module, version])


def exact_jars(name: str, *coordinates: str) -> Path:
    """A folder of the jars named as organisation:module:version, and of nothing that they need."""
    parts = [coordinate.split(":") for coordinate in coordinates]
    dependencies = "".join(
        f'<dependency org="{org}" name="{module}" rev="{version}" transitive="false" conf="default-&gt;master"/>'
        for org, module, version in parts
    )
    module_file = (
        f'<ivy-module version="2.0"><info organisation="rackspan" module="{name}"/>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write(module_file)
        file.flush()
        return _kept(name, ["-ivy", file.name])


def _kept(name: str, what: list[str]) -> Path:
    folder = cache_folder() / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            _publish(_resolve(Path(scratch), what), folder)
    return folder


def _resolve(scratch: Path, what: list[str]) -> Path:
    found = scratch / "lib"
    done = subprocess.run(
        [
            *(java() or "java", f"-Divy.default.ivy.user.dir={scratch / 'ivy'}", "-jar", str(_ivy())),
            *what,
            *("-retrieve", f"{found}/[artifact]-[revision](-[classifier]).[ext]", "-confs", "default"),
        ],
        capture_output=True,
        text=True,
        timeout=RESOLVE_SECONDS,
        check=False,
    )
    if done.returncode != 0 or not list(found.glob("*.jar")):
        raise RuntimeError(f"{' '.join(what)} could not be resolved:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
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
