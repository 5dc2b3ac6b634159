"""The limit of open files of this process, and how many clients fit in it. A client takes two: its own and its broker's connection."""

import resource
from typing import Final

_FILES_PER_CLIENT: Final = 2
_OWN_FILES: Final = 64
"""Log, event loop, metrics, and connections of the gateway's own to controllers."""

_FILES_PER_BROKER: Final = 8
"""Its listener, and connections of the gateway's own to it."""

_UNLIMITED: Final = 2**31


def raise_limit() -> int:
    """Raise the soft limit of open files to the hard one, and return what is in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):  # macOS has a limit of its own below an unlimited hard one.
        return _finite(soft)
    return _finite(hard)


def files_for(clients: int, brokers: int) -> int:
    """Open files that so many clients of so many brokers take."""
    return clients * _FILES_PER_CLIENT + brokers * _FILES_PER_BROKER + _OWN_FILES


def clients_within(files: int, brokers: int) -> int:
    """Clients that so many open files suffice for, at least one."""
    return max(1, (files - files_for(0, brokers)) // _FILES_PER_CLIENT)


def too_few(files: int, clients: int, brokers: int) -> str | None:
    """Why fewer clients than configured can connect; None if the files suffice."""
    needed = files_for(clients, brokers)
    if files >= needed:
        return None
    return (
        f"at most {clients_within(files, brokers)} clients can connect, listen.max.connections is {clients}: it needs {needed} open "
        f"files, and the hard limit of this process is {files}; raise it (LimitNOFILE= of systemd, ulimit -Hn) or lower the setting"
    )


def _finite(limit: int) -> int:
    return _UNLIMITED if limit == resource.RLIM_INFINITY else limit
