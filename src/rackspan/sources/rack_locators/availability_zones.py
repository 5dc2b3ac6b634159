"""`availability-zones`: from a cloud's zone names to its zone ids or back, `us-east-1a=use1-az4,us-east-1b=use1-az6`.

A zone's name is local to an account: us-east-1a of two accounts may be two zones, while use1-az4 is one zone for all. Racks
of several accounts are comparable by id. `to=id` (the default) or `to=name` selects the result; a rack that is one stays.
"""

from rackspan.errors import RackLocatorFailed, UsageError
from rackspan.model.ids import BrokerId, RackId
from rackspan.sources.rack_locator import ClusterView, Properties


class AvailabilityZones:
    def __init__(self, properties: Properties) -> None:
        id_of = {key: value for key, value in properties.items() if key != "to"}
        self._target = properties.get("to", "id")
        if self._target not in ("id", "name"):
            raise UsageError(f"rack locator availability-zones: to is {self._target!r}; it is id or name")
        _refuse_unusable(id_of)
        self._from_to = id_of if self._target == "id" else {zone: name for name, zone in id_of.items()}

    def rack_info(self, cluster: ClusterView) -> dict[BrokerId, RackId]:
        """Errors: RackLocatorFailed for a rack that is neither a name nor an id of the map."""
        return {
            broker.id: self._translated(broker.id, broker.rack) for broker in cluster.brokers if broker.rack is not None
        }

    def _translated(self, broker: BrokerId, rack: RackId) -> RackId:
        if rack in self._from_to:
            return RackId(self._from_to[rack])
        if rack in self._from_to.values():
            return rack
        raise RackLocatorFailed(
            f"rack locator availability-zones: broker {broker} is in rack {rack!r}, which is neither a name nor an id of the "
            "map; add it to --rack-locator-properties"
        )


def _refuse_unusable(id_of: dict[str, str]) -> None:
    if not id_of:
        raise UsageError(
            "rack locator availability-zones: no zones; give them as us-east-1a=use1-az4,us-east-1b=use1-az6"
        )
    name_of: dict[str, str] = {}
    for name, zone in id_of.items():
        if not zone:
            raise UsageError(f"rack locator availability-zones: zone {name} has no id; write it as {name}=ID")
        if zone in name_of:
            raise UsageError(
                f"rack locator availability-zones: {name_of[zone]} and {name} are both {zone}; a zone has one name an account"
            )
        name_of[zone] = name
