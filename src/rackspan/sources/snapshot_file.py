"""Reads and writes snapshots: a JSON file for people, or a folder of Parquet files for large clusters. Both are lossless.

Writing is atomic. snapshot_folder.py, and with it Arrow, is imported with the first folder.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

from rackspan.disk import make_folders, rename_folder, replace_file, staged, writing_output
from rackspan.errors import InvalidSnapshot, UsageError, required_module
from rackspan.model import ClusterSnapshot, ReadSnapshot, json_format


def read(path: Path) -> ReadSnapshot:
    """A snapshot from a JSON file or a Parquet folder. Errors: InvalidSnapshot, UsageError, naming the path."""
    if path.is_dir():
        require_arrow()
        from rackspan.sources.snapshot_folder import read_folder

        return _with_path_in_errors(path, read_folder)
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder; take a snapshot with rackspan snapshot --out {path}")
    return _with_path_in_errors(path, lambda file: json_format.read(file.read_bytes()))


def read_text(content: bytes, name: str) -> ReadSnapshot:
    """A snapshot as JSON text. Errors: InvalidSnapshot, beginning with `name`."""
    try:
        return json_format.read(content)
    except InvalidSnapshot as error:
        raise InvalidSnapshot(f"{name}: {error}") from None


def write(snapshot: ClusterSnapshot, path: Path) -> None:
    """Write a JSON file where the name ends in .json, a Parquet folder otherwise. Nothing is left of a failed write."""
    if path.suffix == ".json":
        text = json_format.write(snapshot)
        with writing_output(path):
            make_folders(path.parent)
            replace_file(path, text)
        return
    if path.exists():
        raise UsageError(f"{path}: exists already; name a new folder, or a file that ends in .json")
    require_arrow()
    from rackspan.sources.snapshot_folder import write_folder

    staging = staged(path)
    try:
        with writing_output(path):
            make_folders(path.parent)
            write_folder(snapshot, staging)
            rename_folder(staging, path)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def require_arrow() -> None:
    """Errors: MissingRequirement if Arrow is not installed."""
    required_module("pyarrow", "Parquet is read and written with it")


def _with_path_in_errors(path: Path, reader: Callable[[Path], ReadSnapshot]) -> ReadSnapshot:
    try:
        return reader(path)
    except InvalidSnapshot as error:
        raise InvalidSnapshot(f"{path}: {error}") from None
    except OSError as error:
        words = " ".join(str(error).split())
        raise InvalidSnapshot(f"{path}: cannot be read: {words}; take the snapshot again") from None
