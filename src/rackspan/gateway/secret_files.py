"""Files with passwords and private keys that other users of the machine may read."""

import stat
from collections.abc import Iterable, Iterator
from pathlib import Path


def exposed(files: Iterable[Path]) -> Iterator[str]:
    """A warning for each of these files that every user may read or write."""
    for file in files:
        mode = file.stat().st_mode
        if mode & stat.S_IRWXO:
            yield f"{file} has mode {stat.S_IMODE(mode):o}, and every user of this machine may use the secrets in it; chmod 600 {file}"
