"""The data folder of a cluster: by default a temporary one that is removed afterwards, even after a crash.

Its owner holds a lock on the file `owner.lock`, which the kernel releases when the owner dies. The next cluster that starts
removes the folders whose lock is free.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

PREFIX: Final = "rackspan-kafka-"
_LOCK: Final = "owner.lock"


class DataFolder:
    """A folder for one cluster: `path` as given and kept, or a temporary one that `close` removes."""

    def __init__(self, path: Path | None = None) -> None:
        self._temporary = path is None
        if path is None:
            sweep()
            path = Path(tempfile.mkdtemp(prefix=PREFIX))
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._lock = _locked(path) if self._temporary else None

    def cluster_id(self) -> str | None:
        """The id of the cluster whose data is in the folder, None in a new folder."""
        for properties in sorted(self.path.glob("*/meta.properties")):
            for line in properties.read_text().splitlines():
                if line.startswith("cluster.id="):
                    return line.removeprefix("cluster.id=")
        return None

    def close(self) -> None:
        if self._temporary:
            shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def sweep(parent: Path | None = None) -> list[Path]:
    """Remove the temporary folders of dead owners; returns them."""
    parent = Path(tempfile.gettempdir()) if parent is None else parent
    return [folder for folder in sorted(parent.glob(f"{PREFIX}*")) if _removed(folder)]


def _removed(folder: Path) -> bool:
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR)
    except OSError:
        return False  # Another user's folder, or one that is being created.
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
        return True
    except OSError:
        return False
    finally:
        os.close(lock)


def _locked(folder: Path) -> int:
    """Create and lock the file under another name, then rename it: an `owner.lock` without a lock has a dead owner."""
    unnamed = folder / f"{_LOCK}.new"
    lock = os.open(unnamed, os.O_RDWR | os.O_CREAT, 0o600)
    with contextlib.suppress(OSError):  # On a file system without locks no folder is swept, which is safe.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    unnamed.rename(folder / _LOCK)
    return lock
