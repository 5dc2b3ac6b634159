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

from rackspan.errors import UsageError
from rackspan.kafka_process.release.versions import KafkaVersion

PREFIX: Final = "rackspan-kafka-"
_LOCK: Final = "owner.lock"
META_PROPERTIES: Final = "meta.properties"
"""In the data folder of each node that is formatted: its ids."""

_RELEASE: Final = "kafka.release"
"""The release that has formatted the folder."""


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
        for properties in sorted(self.path.glob(f"*/{META_PROPERTIES}")):
            for line in properties.read_text().splitlines():
                if line.startswith("cluster.id="):
                    return line.removeprefix("cluster.id=")
        return None

    def claim(self, version: KafkaVersion) -> None:
        """Keep the release that formats a new folder. Errors: UsageError for one that a newer release has formatted.

        An older Kafka does not read such a folder: its metadata.version is not known there.
        """
        release = self.path / _RELEASE
        if self.cluster_id() is None:
            release.write_text(f"{version}\n")
            return
        formatted_by = KafkaVersion.parse(release.read_text().strip()) if release.exists() else version
        if formatted_by > version:
            raise UsageError(
                f"{self.path}: the data was formatted by Kafka {formatted_by}, and Kafka {version} does not read it; "
                f"start {formatted_by}, or give {version} another folder"
            )

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
