"""Power cuts on a local disk: flushes what was written, and repairs the log of a table after a cut.

delta-rs writes a log entry to a file of another name and links it into place, without a flush. A cut between the link and
`flush_log` can leave an entry that is empty or torn; so can a bad block, in a commit that was reported as done. Such an entry is
renamed, `….json.torn-pending` until the caller has brought back what it named (landing/recover.py), then `….json.torn`: no reader
of Delta Lake reads either. An entry is whole if each line is JSON, and their number is the one that `append` recorded. Data files
are flushed before their commit. A torn checkpoint is renamed with the hint that names it.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from rackspan.disk import to_disk

LOG: Final = "_delta_log"
HINT: Final = "_last_checkpoint"
TORN: Final = ".torn"
PENDING: Final = ".torn-pending"
ACTION_COUNT: Final = "rackspanActions"
"""The key in `commitInfo` of the number of the entry's other lines, as text: an entry cut between two lines is JSON too."""

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


def torn_entries(table: Path) -> list[Path]:
    """The torn entries at the end of a log, and whole ones after a torn one, beyond which no reader can go.

    delta-rs takes an empty entry for one that changes nothing, so each reader has to look.
    """
    newest = sorted((table / LOG).glob("*.json"))[-ENTRIES_CHECKED:]
    torn = next((place for place, entry in enumerate(newest) if not _is_whole_entry(entry)), len(newest))
    return newest[torn:]


def torn_files(table: Path) -> list[Path]:
    """The torn entries, and a torn checkpoint with the hint that names it."""
    log = table / LOG
    found = torn_entries(table)
    hint = log / HINT
    if hint.is_file() and not _is_whole_hint(log, hint):
        found += [
            checkpoint
            for checkpoint in sorted(log.glob("*.checkpoint.parquet"))[-1:]
            if not _is_whole_checkpoint(checkpoint)
        ]
        found.append(hint)
    return found


def pending_files(table: Path) -> list[Path]:
    """Entries that a repair has renamed, and whose rows it has not looked for yet, or it was killed meanwhile."""
    return sorted((table / LOG).glob(f"*{PENDING}"))


def set_aside_torn(table: Path) -> list[Path]:
    """Rename what is torn at the end of a log, the newest first. Returns the renamed files, those of a killed repair included."""
    for file in reversed(torn_files(table)):
        file.rename(_free_name(file, PENDING))
        _checksum(file).unlink(missing_ok=True)
        file.with_suffix(".crc").unlink(missing_ok=True)
        to_disk(table / LOG)
    return pending_files(table)


def end_repair(table: Path) -> None:
    """Give the torn files their final name, once what they named is brought back."""
    for file in pending_files(table):
        file.rename(_free_name(file.with_name(file.name.partition(PENDING)[0]), TORN))
    if (table / LOG).is_dir():
        to_disk(table / LOG)


def repair_log(table: Path) -> list[str]:
    """Rename what is torn at the end of a log whose rows can be made again. Returns the former names of the files."""
    if not torn_files(table) and not pending_files(table):
        return []
    with locked(table / LOG):
        names = [former_name(file) for file in set_aside_torn(table)]
        end_repair(table)
    return names


def former_name(file: Path) -> str:
    """The name of a torn file before it was renamed."""
    return file.name.partition(TORN)[0]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder for a block: of two repairs the second must not take the first one's commit for the torn entry."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _free_name(file: Path, suffix: str) -> Path:
    """The file's name with a suffix, and a number if an earlier torn file of that version has it."""
    names = (file.with_name(f"{file.name}{suffix}{number or ''}") for number in range(1_000_000))
    return next(name for name in names if not name.exists())


def _checksum(file: Path) -> Path:
    """The file that Hadoop, and so Spark, writes beside each of its own; Spark reads no file that differs from it."""
    return file.with_name(f".{file.name}.crc")


def _is_whole_entry(entry: Path) -> bool:
    try:
        lines = entry.read_bytes().splitlines()
        actions = [json.loads(line) for line in lines]
        if not actions or not all(isinstance(action, dict) for action in actions):
            return False
        written = actions[0].get("commitInfo", {}).get(ACTION_COUNT)
        return written is None or int(written) == len(actions) - 1
    except FileNotFoundError:
        # Another process has just renamed it; the lock shows the rest.
        return True
    except (ValueError, AttributeError):
        return False


def _is_whole_hint(log: Path, hint: Path) -> bool:
    try:
        version = json.loads(hint.read_bytes())["version"]
        return _is_whole_checkpoint(log / f"{version:020}.checkpoint.parquet")
    except (ValueError, KeyError, TypeError):
        return False


def _is_whole_checkpoint(checkpoint: Path) -> bool:
    try:
        pq.read_table(checkpoint)
    except (OSError, ValueError, pa.ArrowException):
        return False
    return True
