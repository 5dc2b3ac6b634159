"""A disk that loses power: of a folder only what was flushed with fsync is left.

A file's bytes are kept when the file was flushed, a folder's names when the folder was. A name that changed since then may
have reached the disk or not: both are looked at.
"""

import os
import stat
from pathlib import Path

import pytest

Files = dict[str, bytes]
Names = dict[str, int]


class FlushedFolder:
    """A folder as a power loss would leave it, folders in it too. What is in it at the beginning is on the disk."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._at = folder.stat().st_ino
        self._names = {self._at: _present(folder)}
        """By the inode of each folder that was flushed."""
        self._bytes = {inode: (folder / name).read_bytes() for name, inode in self._names[self._at].items()}
        monkeypatch.setattr(os, "fsync", self._fsync)

    def _fsync(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            self._names[status.st_ino] = _present(descriptor)
        else:
            self._bytes[status.st_ino] = Path(f"/proc/self/fd/{descriptor}").read_bytes()

    def left(self) -> Files:
        """With the names that were flushed."""
        return self._files(self._names[self._at])

    def left_at_best(self) -> Files:
        """With the names of the folder itself as they are, which the disk may have written by itself."""
        return self._files(_present(self.folder))

    def _files(self, names: Names, above: str = "") -> Files:
        files: Files = {}
        for name, inode in names.items():
            if inode in self._names:
                files |= self._files(self._names[inode], f"{above}{name}/")
            else:
                files[above + name] = self._bytes.get(inode, b"")
        return files


def _present(folder: Path | int) -> Names:
    return {entry.name: entry.inode() for entry in os.scandir(folder)}
