"""`registered`: each broker's own `broker.rack`, as in the accepted KIP-36. Takes no properties."""

from rackspan.model.ids import BrokerId, RackId
from rackspan.sources.rack_locator import ClusterView, Properties, refuse_unknown


class RegisteredRacks:
    def __init__(self, properties: Properties) -> None:
        refuse_unknown("registered", properties, frozenset())

    def rack_info(self, cluster: ClusterView) -> dict[BrokerId, RackId]:
        return {broker.id: broker.rack for broker in cluster.brokers if broker.rack is not None}
