from rackspan.cluster.core.settings import ClusterSettings
from rackspan.cluster.host.assembly import configured_locator
from rackspan.model import Broker, BrokerId, RackId
from rackspan.sources.rack_locator import ClusterView


def test_a_cluster_without_the_properties_has_no_locator() -> None:
    assert configured_locator(ClusterSettings(), "c1") is None


def test_a_configured_locator_gets_its_properties_and_the_brokers() -> None:
    configs = {"rack.locator.class": "host-pattern", "rack.locator.properties": "pattern=^(r[0-9])-"}
    locate = configured_locator(ClusterSettings(extra_configs=configs), "c1")
    assert locate is not None
    assert locate([Broker(BrokerId(1), host="r1-a"), Broker(BrokerId(2), host="r2-b")]) == {1: "r1", 2: "r2"}


def test_a_locator_needs_no_properties() -> None:
    locate = configured_locator(ClusterSettings(extra_configs={"rack.locator.class": "registered"}), "c1")
    assert locate is not None
    assert locate([Broker(BrokerId(1), host="a", rack=RackId("r1")), Broker(BrokerId(2), host="b")]) == {1: "r1"}


class OfCluster:
    """Every broker is in a rack that is named after its cluster."""

    def __init__(self, _properties: object) -> None:
        """It has none."""

    def rack_info(self, cluster: ClusterView) -> dict[BrokerId, RackId]:
        return {broker.id: RackId(f"{cluster.cluster_id}-{broker.id}") for broker in cluster.brokers}


def test_a_locator_gets_the_id_of_its_cluster() -> None:
    configs = {"rack.locator.class": f"{__name__}:OfCluster"}
    locate = configured_locator(ClusterSettings(extra_configs=configs), "c1")
    assert locate is not None
    assert locate([Broker(BrokerId(1)), Broker(BrokerId(2))]) == {1: "c1-1", 2: "c1-2"}
