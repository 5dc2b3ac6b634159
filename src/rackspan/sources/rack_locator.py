"""The interface of a rack locator, and a snapshot with the racks that one returned.

KIP-36's first draft had this interface and its accepted text does not: racks may be kept anywhere, and a class named in
`rack.locator.class` returns them, given `rack.locator.properties`. The locators themselves are in rack_locators/.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from rackspan.errors import RackLocatorFailed, RackspanError, UsageError
from rackspan.model import INT32_MAX, Broker, BrokerId, Controller, RackId

if TYPE_CHECKING:
    # NumPy comes with it, for which a gateway would wait when it starts.
    from rackspan.model import ClusterSnapshot

Properties: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The input of a locator, read-only: the brokers as registered, with hosts where known."""

    brokers: tuple[Broker, ...]
    cluster_id: str | None = None


class RackLocator(Protocol):
    """Returns the rack of each broker.

    It is created once, with its properties, and refuses malformed ones then. It is called for every decision, so that the
    newest mapping counts.
    """

    def rack_info(self, cluster: ClusterView, /) -> Mapping[BrokerId, RackId]:
        """Rack by broker id. A broker left out has no rack; an empty mapping means that no rack is known.

        Ids of brokers that are not in the cluster are ignored. The locator does not decide what a missing rack means:
        audits follow `--unracked`, and tools that place replicas refuse partial racks.
        """
        ...


RackLocatorFactory: TypeAlias = Callable[[Properties], RackLocator]
"""The type of `rack.locator.class`: a class or function that takes the properties."""


def located(snapshot: "ClusterSnapshot", locator: RackLocator) -> "ClusterSnapshot":
    """The snapshot with the locator's racks instead of the registered ones.

    A controller in the same process as a broker has the broker's rack; the others keep theirs, since locators return racks
    of brokers. Errors: RackLocatorFailed, and UsageError from the locator.
    """
    racks = rack_info(locator, ClusterView(snapshot.brokers, snapshot.cluster_id))
    broker_ids = {broker.id for broker in snapshot.brokers}

    def controller(given: Controller) -> Controller:
        return replace(given, rack=racks.get(given.id)) if given.id in broker_ids else given

    return replace(
        snapshot,
        brokers=tuple(replace(broker, rack=racks.get(broker.id)) for broker in snapshot.brokers),
        controllers=tuple(controller(given) for given in snapshot.controllers),
    )


def rack_info(locator: RackLocator, cluster: ClusterView) -> dict[BrokerId, RackId]:
    """Call a locator and check its result, since users write locators too. Errors: RackLocatorFailed."""
    name = type(locator).__name__
    try:
        racks: Any = locator.rack_info(cluster)
    except RackspanError:
        raise
    except Exception as error:
        raise RackLocatorFailed(
            f"rack locator {name}: {type(error).__name__}: {one_line(error)}; --debug shows where"
        ) from error
    if not isinstance(racks, Mapping):
        raise RackLocatorFailed(f"rack locator {name}: returned {type(racks).__name__}, not a mapping of racks; fix it")
    for broker, rack in racks.items():
        if type(broker) is not int or not 0 <= broker <= INT32_MAX:
            raise RackLocatorFailed(f"rack locator {name}: {broker!r} is not a broker id; return whole numbers")
        if not isinstance(rack, str) or not rack:
            raise RackLocatorFailed(
                f"rack locator {name}: broker {broker} in rack {rack!r}, but a rack is a name; leave the broker out instead"
            )
    return dict(racks)


def parse_properties(text: str) -> dict[str, str]:
    r"""`username=foo,password=bar`; a comma within a value is written `\,`.

    Errors: UsageError, with the pair's number and key: a value may be a password and is never shown.
    """
    properties: dict[str, str] = {}
    for number, pair in enumerate(re.split(r"(?<!\\),", text) if text.strip() else [], start=1):
        key, equals, value = pair.partition("=")
        key = key.strip()
        if not equals or not key:
            raise UsageError(f"rack.locator.properties: pair {number} is not key=value; write them as a=1,b=2")
        if key in properties:
            raise UsageError(f"rack.locator.properties: {key} is given twice; leave one of them out")
        properties[key] = value.strip().replace("\\,", ",")
    return properties


def refuse_unknown(locator: str, properties: Properties, known: frozenset[str]) -> None:
    """Refuse misspelt properties. Errors: UsageError."""
    for key in properties:
        if key not in known:
            takes = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
            raise UsageError(f"rack locator {locator}: property {key!r} is unknown; {takes}")


def required(locator: str, properties: Properties, key: str) -> str:
    """The value of a required property. Errors: UsageError."""
    value = properties.get(key, "")
    if not value:
        raise UsageError(f"rack locator {locator}: property {key} is missing; give --rack-locator-properties {key}=…")
    return value


def broker_and_rack(place: str, broker: str, rack: object) -> tuple[BrokerId, RackId]:
    """One entry of a mapping written by a user, checked. `place` begins the message. Errors: UsageError."""
    if not re.fullmatch(r"[0-9]{1,10}", broker, re.ASCII) or int(broker) > INT32_MAX:
        raise UsageError(f"{place}: {broker!r} is not a broker id; a line reads like 0=rack1")
    if not isinstance(rack, str) or not rack.strip():
        raise UsageError(
            f"{place}: broker {broker} in rack {rack!r}, but a rack is a name; leave the broker out instead"
        )
    return BrokerId(int(broker)), RackId(rack.strip())


def once_each(place: str, entries: Iterable[tuple[BrokerId, RackId]]) -> dict[BrokerId, RackId]:
    """The mapping of these entries; `0` and `00` are one broker. Errors: UsageError for a broker that is given twice."""
    racks: dict[BrokerId, RackId] = {}
    for broker, rack in entries:
        if broker in racks:
            raise UsageError(f"{place}: broker {broker} is given twice; leave one of them out")
        racks[broker] = rack
    return racks


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or "no reason given"
