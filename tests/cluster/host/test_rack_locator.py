from rackspan.cluster.core.settings import ClusterSettings
from rackspan.cluster.host.assembly import configured_locator
from rackspan.model import Broker, BrokerId, RackId


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
