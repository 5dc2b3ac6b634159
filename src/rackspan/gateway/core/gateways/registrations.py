"""Records of the config topic that are no values: registrations of gateways, and the confirmation that the topic has every value.

Their keys are optional: a reader that does not know the kind of an optional record ignores it. Each gateway renews its
registration in every period. How long another one has not renewed its own is the time between two records of one process that
stand behind it, by that process' own monotonic clock: no wall clock counts, and no clocks of two machines are compared.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rackspan.gateway.core.acknowledgement.guard import AcknowledgementMode

HEARTBEAT_SECONDS: Final = 30.0
"""Between two registrations of one gateway."""

SILENT_PERIODS: Final = 3
"""A gateway that has not registered for so many periods is silent."""

NAME_PATTERN: Final = r"^[A-Za-z0-9._:-]{1,200}\Z"

_VERSION: Final = 1
_GATEWAY: Final = "gateway"
_CONFIRMATION: Final = "confirmation"


@dataclass(frozen=True, slots=True)
class GatewayRegistration:
    """What a gateway writes about itself. `uptime_seconds` since its process began, by its monotonic clock."""

    incarnation_id: str
    uptime_seconds: float
    release: str
    mode: AcknowledgementMode
    lease_seconds: float


def registration_record(name: str, registration: GatewayRegistration | None) -> tuple[bytes, bytes | None]:
    """Key and value of the record that registers a gateway, or removes it."""
    key = _key({"type": _GATEWAY, "name": name})
    if registration is None:
        return key, None
    value = {
        "version": _VERSION,
        "incarnation_id": registration.incarnation_id,
        "uptime_seconds": round(registration.uptime_seconds, 3),
        "release": registration.release,
        "mode": registration.mode.value,
        "lease_seconds": registration.lease_seconds,
    }
    return key, json.dumps(value, sort_keys=True).encode()


def confirmation_record() -> tuple[bytes, bytes]:
    """Key and value of the record by which somebody confirms that the topic has every value."""
    return _key({"type": _CONFIRMATION}), json.dumps({"version": _VERSION}).encode()


def _key(fields: Mapping[str, str]) -> bytes:
    return json.dumps({**fields, "optional": True}, sort_keys=True).encode()


def optional_key(key: bytes | None) -> Mapping[str, Any] | None:
    """The fields of a key whose record a reader may ignore, else None."""
    try:
        fields = json.loads(key or b"")
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) and fields.get("optional") is True else None


def _parse(value: bytes) -> GatewayRegistration | None:
    """None if the registration cannot be read."""
    try:
        content = json.loads(value)
        uptime, lease = float(content["uptime_seconds"]), float(content["lease_seconds"])
        incarnation, release = content["incarnation_id"], content["release"]
        mode = AcknowledgementMode(content["mode"])
        if content["version"] != _VERSION or not (math.isfinite(uptime) and math.isfinite(lease)):
            return None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    if not (isinstance(incarnation, str) and isinstance(release, str)):
        return None
    return GatewayRegistration(incarnation, uptime, release, mode, lease)


@dataclass(slots=True)
class RegisteredGateway:
    """The last registration under one name; None if it cannot be read."""

    value: bytes
    registration: GatewayRegistration | None
    quiet_seconds: float = 0.0
    """The longest time between two registrations of one other gateway after this one."""
    after: dict[str, tuple[str, float]] = field(default_factory=dict)
    """By the names of other gateways, incarnation id and uptime of the first registration after this one."""
    before: str | None = None
    """The incarnation id before the present one."""
    duplicate: bool = False
    repeated: int = 0
    """How often the present incarnation has registered since another one did."""

    def renewed(self, value: bytes) -> "RegisteredGateway":
        """With the next registration under the same name."""
        registration = _parse(value)
        ids = [None if found is None else found.incarnation_id for found in (self.registration, registration)]
        if ids[0] == ids[1]:
            repeated = self.repeated + 1
            duplicate = self.duplicate and repeated <= SILENT_PERIODS
            return RegisteredGateway(value, registration, before=self.before, duplicate=duplicate, repeated=repeated)
        return RegisteredGateway(
            value,
            registration,
            before=ids[0],
            duplicate=self.duplicate or (ids[1] is not None and ids[1] == self.before),
        )

    def observe_other(self, name: str, registration: GatewayRegistration) -> None:
        """Another gateway has registered after this one."""
        incarnation, since = self.after.get(name, (None, 0.0))
        if incarnation != registration.incarnation_id:
            self.after[name] = registration.incarnation_id, registration.uptime_seconds
        else:
            self.quiet_seconds = max(self.quiet_seconds, registration.uptime_seconds - since)

    @property
    def silent(self) -> bool:
        return self.quiet_seconds >= SILENT_PERIODS * HEARTBEAT_SECONDS


@dataclass(slots=True)
class _State:
    gateways: dict[str, RegisteredGateway] = field(default_factory=dict)
    confirmed: bool = False


class GatewayRecords:
    """Follows the optional records of the topic. While it is read from its beginning, what was read before stays in force."""

    def __init__(self) -> None:
        self._state = _State()
        self._reread: _State | None = _State()

    @property
    def gateways(self) -> Mapping[str, RegisteredGateway]:
        """By name."""
        return self._state.gateways

    @property
    def confirmed(self) -> bool:
        """Whether somebody has confirmed that the topic has every value, since it was created."""
        return self._state.confirmed

    def read_again(self) -> None:
        self._reread = _State()

    def end(self) -> None:
        """The topic is read to its end. A gateway that has not registered meanwhile is as silent as it was."""
        if self._reread is None:
            return
        reread, self._reread = self._reread, None
        for name, known in self._state.gateways.items():
            if name in reread.gateways and reread.gateways[name].value == known.value:
                reread.gateways[name] = known
        self._state = reread

    def observe(self, key: Mapping[str, Any], value: bytes | None) -> None:
        """The next record, by the fields of its key. One of another kind is ignored."""
        state = self._state if self._reread is None else self._reread
        kind, name = key.get("type"), key.get("name")
        if kind == _CONFIRMATION:
            state.confirmed = value is not None
        elif kind == _GATEWAY and isinstance(name, str) and re.match(NAME_PATTERN, name):
            _register(state.gateways, name, value)


def _register(gateways: dict[str, RegisteredGateway], name: str, value: bytes | None) -> None:
    if value is None:
        gateways.pop(name, None)
        return
    known = gateways.get(name)
    gateway = gateways[name] = RegisteredGateway(value, _parse(value)) if known is None else known.renewed(value)
    if gateway.registration is not None:
        for other, named in gateways.items():
            if other != name:
                named.observe_other(name, gateway.registration)
