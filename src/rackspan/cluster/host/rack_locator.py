"""`rack.locator.class` and `rack.locator.properties`: racks from a locator for the placement of new topics (KIP-36, draft).

The locator is created when the cluster starts, and called for every new topic. Its racks count for placement only: responses
to clients have the racks that the brokers registered.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from rackspan.cluster.core.controller.context import Locate
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.model import Broker, BrokerId, RackId

LOCATOR_CLASS: Final = "rack.locator.class"
LOCATOR_PROPERTIES: Final = "rack.locator.properties"


def configured_locator(settings: ClusterSettings, cluster_id: str) -> Locate | None:
    """None where no locator is configured. Errors: UsageError, RackLocatorFailed."""
    name = settings.extra_configs.get(LOCATOR_CLASS)
    if name is None:
        return None
    from rackspan.sources.rack_locator import ClusterView, parse_properties, rack_info
    from rackspan.sources.rack_locators import make

    locator = make(name, parse_properties(settings.extra_configs.get(LOCATOR_PROPERTIES, "")))

    def locate(brokers: Sequence[Broker]) -> Mapping[BrokerId, RackId]:
        return rack_info(locator, ClusterView(tuple(brokers), cluster_id))

    return locate
