"""The gateways of a cluster that a gateway warns of, each with the reason and what to do."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from rackspan.gateway.core.acknowledgement.guard import AcknowledgementMode
from rackspan.gateway.core.gateways.registrations import HEARTBEAT_SECONDS, SILENT_PERIODS, RegisteredGateway


class Reason(StrEnum):
    """Why a gateway of the cluster is named."""

    MODE = "mode"
    """Its mode promises less."""
    OLDER = "older"
    SILENT = "silent"
    LEASE = "lease"
    UNREADABLE = "unreadable"
    DUPLICATE = "duplicate"
    """Two processes register under one name."""


class Difference(NamedTuple):
    """A gateway that is named, and a sentence about it."""

    gateway: str
    reason: Reason
    warning: str


def differences(
    gateways: Mapping[str, RegisteredGateway], name: str, release: str, mode: AcknowledgementMode, lease_seconds: float
) -> list[Difference]:
    """The gateways that a gateway of this name, release, mode and lease warns of, in order."""
    found = []
    for other, gateway in sorted(gateways.items()):
        if gateway.duplicate:
            found.append(Difference(other, Reason.DUPLICATE, _DUPLICATE.format(name=other)))
        if other != name:
            found += (
                Difference(other, reason, f"gateway {other} {sentence}")
                for reason, sentence in _differences(gateway, other, release, mode, lease_seconds)
            )
    return found


_DUPLICATE: Final = "two gateways register as {name}, so that one of them hides the other: give each a gateway.id of its own in its file"

_PROMISES: Final = {
    AcknowledgementMode.OFF: 0,
    AcknowledgementMode.ADVISORY: 1,
    AcknowledgementMode.PRE: 2,
    AcknowledgementMode.VERIFIED: 3,
    AcknowledgementMode.STRICT: 3,
}
"""Modes in the order of what they promise."""


def _differences(
    gateway: RegisteredGateway, name: str, release: str, mode: AcknowledgementMode, lease_seconds: float
) -> Iterator[tuple[Reason, str]]:
    if gateway.silent:
        yield (
            Reason.SILENT,
            f"has not registered for {SILENT_PERIODS} periods of {HEARTBEAT_SECONDS:g} s: it may still serve clients, by values that are not "
            "in force any more; look at it, and once it is gone for good, remove it by "
            f"rackspan gateway confirm --config FILE --gone {shlex.quote(name)} --apply",
        )
    other = gateway.registration
    if other is None:
        yield (
            Reason.UNREADABLE,
            "has a registration that cannot be read here: it is of a later release than this gateway; update this one",
        )
        return
    if _PROMISES[other.mode] < _PROMISES[mode]:
        yield (
            Reason.MODE,
            f"is in mode {other.mode.value}, which acknowledges what mode {mode.value} holds or refuses; change its "
            "acknowledgements.mode, or end it",
        )
    if _release_order(other.release) < _release_order(release):
        yield Reason.OLDER, f"is of release {other.release}, older than {release} here; update it"
    if other.mode is not AcknowledgementMode.OFF and other.lease_seconds != lease_seconds:
        yield (
            Reason.LEASE,
            f"has a lease of {other.lease_seconds:g} s and this one of {lease_seconds:g} s, and a raise of min.insync.racks waits for one of "
            "them only; run one release of the gateway",
        )


def _release_order(release: str) -> tuple[Sequence[int], bool, str]:
    """Sorts releases: 0.2.0.dev0 is before 0.2.0, which is before 0.10.0."""
    numbers = re.match(r"\d+(?:\.\d+)*", release)
    shown = "" if numbers is None else numbers[0]
    rest = release[len(shown) :]
    parts = [int(number) for number in shown.split(".") if number]
    while parts and parts[-1] == 0:
        parts.pop()
    return parts, not rest or rest.startswith((".post", "+")), rest
