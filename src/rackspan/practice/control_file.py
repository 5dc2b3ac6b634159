"""The files by which processes of one user find a practice cluster that is up: its address and token, for the owner alone.

One file a cluster, in the user's state folder. The process of the cluster locks its file as long as it lives, so that the file
of one that was killed is recognized, whatever process has its id or port by then.
"""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from rackspan.disk import staged
from rackspan.errors import UsageError

_OWNER_ONLY: Final = 0o600


class ControlFile(msgspec.Struct, frozen=True):
    """What a client needs. `address` is HOST:PORT of the control server, `kind` embedded, or kafka and its version."""

    address: str
    token: str
    kind: str
    bootstrap_servers: str


def control_folder(environ: Mapping[str, str] | None = None) -> Path:
    """XDG_STATE_HOME or ~/.local/state, then rackspan/clusters."""
    state = (os.environ if environ is None else environ).get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "rackspan" / "clusters"


@contextmanager
def announced(control: ControlFile, folder: Path) -> Iterator[Path]:
    """The file exists, and is locked, as long as the block runs. Errors: UsageError for a folder that cannot be written."""
    path = folder / f"{control.address.rpartition(':')[2]}-{os.getpid()}.json"
    staging = staged(path)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Never readable by others, not even before it has its name.
        descriptor = os.open(staging, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be written: {error.strerror}; set XDG_STATE_HOME to a folder of yours"
        ) from None
    with os.fdopen(descriptor, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(msgspec.json.format(msgspec.json.encode(control)) + b"\n")
        file.flush()
        staging.rename(path)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)


def find_control(folder: Path, address: str | None = None) -> ControlFile:
    """The cluster that is up at an address of a control server, or the only one. Files of clusters that were killed are removed.

    Errors: UsageError if there is none, or several and no address.
    """
    found, killed = _read_all(folder)
    if address is not None:
        found = [control for control in found if control.address == address]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(f"{control.address} ({control.kind})" for control in found)
        raise UsageError(f"{len(found)} practice clusters are up: {listed}; name one with --control HOST:PORT")
    where = "" if address is None else f" at {address}"
    ended = f" ({', '.join(killed)}: killed, its file is removed)" if killed else ""
    raise UsageError(f"no practice cluster is up{where}{ended}; start one with `rackspan cluster up`")


def _read_all(folder: Path) -> tuple[list[ControlFile], list[str]]:
    """The clusters that are up, and the addresses of those that were killed."""
    found, killed = [], []
    for path in sorted(folder.glob("*.json")):
        # One that ends meanwhile removes its own.
        with suppress(FileNotFoundError), path.open("rb") as file:
            try:
                control = msgspec.json.decode(file.read(), type=ControlFile)
            except msgspec.MsgspecError as error:
                raise UsageError(f"{path}: not written by rackspan: {error}; delete it") from None
            if _is_locked(file.fileno()):
                found.append(control)
            else:
                killed.append(control.address)
                path.unlink()
    return found, killed


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
