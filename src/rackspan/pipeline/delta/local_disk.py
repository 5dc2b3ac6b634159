"""Power cuts on a local disk: flushes what was written, and repairs the log of a table after a cut.

delta-rs writes a log entry to a file of another name and links it into place, without a flush. A cut between the link and
`flush_log` can leave an entry that is empty or torn. Such a commit has not been reported as done, so it is removed before the next
one is made: every line of an entry is JSON, and the file ends with the last of them. Data files are flushed before
their commit and need no repair. A torn checkpoint is removed with the hint that names it: the entries before it are still there,
since nothing removes any.
"""

import json
from pathlib import Path
from typing import Final

from rackspan.disk import to_disk

LOG: Final = "_delta_log"
HINT: Final = "_last_checkpoint"
PARQUET_MAGIC: Final = b"PAR1"
ENTRIES_CHECKED: Final = 3
"""The newest entries of a log: at most one can be torn for each writer that the power cut stopped."""


def flush_file(table: Path, name: str) -> None:
    """Flush a data file, and the names of the folders above it."""
    file = table / name
    to_disk(file)
    if _checksum(file).is_file():
        to_disk(_checksum(file))
    for folder in (file.parent, table) if file.parent != table else (table,):
        to_disk(folder)


def flush_log(table: Path) -> None:
    """Flush the newest entries and checkpoints of a log, and the names in it."""
    log = table / LOG
    newest = sorted(log.glob("*.json"))[-ENTRIES_CHECKED:]
    checkpoints = sorted(log.glob("*.checkpoint.parquet"))[-1:]
    for file in (*newest, *checkpoints, log / HINT):
        for written in (file, _checksum(file)):
            if written.is_file():
                to_disk(written)
    for folder in (log, table, table.parent):
        to_disk(folder)


def repair_log(table: Path) -> list[str]:
    """Remove what a power cut has torn from the end of a log. Returns the names of the removed files."""
    log = table / LOG
    if not log.is_dir():
        return []
    newest = sorted(log.glob("*.json"))[-ENTRIES_CHECKED:]
    torn = next((place for place, entry in enumerate(newest) if not _is_whole_entry(entry)), len(newest))
    removed = []
    # Whole entries after a torn one were not acknowledged either: `flush_log` flushes all of these.
    for entry in reversed(newest[torn:]):
        entry.unlink()
        _checksum(entry).unlink(missing_ok=True)
        entry.with_suffix(".crc").unlink(missing_ok=True)
        removed.append(entry.name)
    hint = log / HINT
    if hint.is_file() and not _is_whole_hint(log, hint):
        for checkpoint in sorted(log.glob("*.checkpoint.parquet"))[-1:]:
            if not _is_whole_checkpoint(checkpoint):
                checkpoint.unlink()
                _checksum(checkpoint).unlink(missing_ok=True)
                removed.append(checkpoint.name)
        hint.unlink()
        _checksum(hint).unlink(missing_ok=True)
        removed.append(HINT)
    if removed:
        to_disk(log)
    return removed


def _checksum(file: Path) -> Path:
    """The file that Hadoop, and so Spark, writes beside each of its own; Spark reads no file that differs from it."""
    return file.with_name(f".{file.name}.crc")


def _is_whole_entry(entry: Path) -> bool:
    try:
        lines = entry.read_bytes().splitlines()
        return bool(lines) and all(isinstance(json.loads(line), dict) for line in lines)
    except ValueError:
        return False


def _is_whole_hint(log: Path, hint: Path) -> bool:
    try:
        version = json.loads(hint.read_bytes())["version"]
        return _is_whole_checkpoint(log / f"{version:020}.checkpoint.parquet")
    except (ValueError, KeyError, TypeError):
        return False


def _is_whole_checkpoint(checkpoint: Path) -> bool:
    try:
        content = checkpoint.read_bytes()
    except FileNotFoundError:
        return False
    return content.startswith(PARQUET_MAGIC) and content.endswith(PARQUET_MAGIC)
