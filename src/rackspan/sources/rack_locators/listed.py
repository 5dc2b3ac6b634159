"""`properties`: the mapping itself, as in `0=rack1,1=rack1,2=rack2`. No properties: no racks."""

from rackspan.model.ids import BrokerId, RackId
from rackspan.sources.rack_locator import ClusterView, Properties, broker_and_rack, once_each


class ListedRacks:
    def __init__(self, properties: Properties) -> None:
        place = "rack locator properties"
        self._racks = once_each(place, (broker_and_rack(place, broker, rack) for broker, rack in properties.items()))

    def rack_info(self, _cluster: ClusterView) -> dict[BrokerId, RackId]:
        return dict(self._racks)
