"""The class archive of a release: the classes of Kafka as one Java has parsed and verified them (Class-Data Sharing).

    <cache>/rackspan/kafka/4.1.0/classes-<hash of the Java's build>.jsa

Before the first cluster of a release starts, a node of its own starts, stops and writes it as it ends: 48 MB. Every later start of
a node or tool loads it; a node takes 0.6 of the processor time. Java itself ignores an archive of another build or of other jars,
but crashes on one that is cut off: a whole one is renamed into its place, after it is on the disk. An empty file means that
this Java writes none: it is not tried again.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from rackspan.java import Java
from rackspan.kafka_process.release.jars import locked

_QUIET: Final = "-Xlog:disable"
"""Java would report an archive that it ignores on standard output, which belongs to the tool."""


def archive_file(lib: Path, java: Java) -> Path:
    """Where the archive of the release in `lib` stands for this Java, written yet or not."""
    return lib.parent / f"classes-{sha256(java.build.encode()).hexdigest()[:16]}.jsa"


def options(archive: Path) -> tuple[str, ...]:
    """The options of a Java that loads the archive, none before it is written or where this Java writes none."""
    return (f"-XX:SharedArchiveFile={archive}", _QUIET) if archive.exists() and archive.stat().st_size else ()


@contextmanager
def writing(archive: Path) -> Iterator[tuple[str, ...]]:
    """The options of a Java that ends within the block and writes the archive as it ends; none where there is one already.

    Where it cannot be written, a start without it is only slower: nothing is reported.
    """
    with ExitStack() as held:
        try:
            if not archive.exists():
                held.enter_context(locked(archive.with_suffix(".lock")))
        except OSError:  # A cache that another user filled.
            yield ()
            return
        if archive.exists():
            yield ()
            return
        unfinished = archive.with_name(f".{archive.name}")
        held.callback(unfinished.unlink, missing_ok=True)
        yield (f"-XX:ArchiveClassesAtExit={unfinished}", _QUIET)
        with suppress(OSError):
            unfinished.touch()
            with unfinished.open("rb") as written:
                os.fsync(written.fileno())
            unfinished.rename(archive)
