"""A disk that loses power: of a folder only what was flushed with fsync is left.

A file's bytes are kept when the file was flushed, a folder's names when the folder was. A name that changed since then may
have reached the disk or not: both are looked at.
"""

import os
from pathlib import Path

import pytest

Files = dict[str, bytes]


class FlushedFolder:
    """A folder as a power loss would leave it. What is in it at the beginning is on the disk."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._names = self._present()
        self._bytes = {inode: (folder / name).read_bytes() for name, inode in self._names.items()}
        self._at = folder.stat().st_ino
        monkeypatch.setattr(os, "fsync", self._fsync)

    def _present(self) -> dict[str, int]:
        return {entry.name: entry.inode() for entry in os.scandir(self.folder)}

    def _fsync(self, descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        if inode == self._at:
            self._names = self._present()
        else:
            self._bytes[inode] = Path(f"/proc/self/fd/{descriptor}").read_bytes()

    def left(self) -> Files:
        """With the names that were flushed."""
        return self._files(self._names)

    def left_at_best(self) -> Files:
        """With the names as they are, which the disk may have written by itself."""
        return self._files(self._present())

    def _files(self, names: dict[str, int]) -> Files:
        return {name: self._bytes.get(inode, b"") for name, inode in names.items()}
