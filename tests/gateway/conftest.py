"""An embedded cluster of three racks with a gateway before it, for a module's tests."""

from collections.abc import Iterator

import pytest

from rackspan.cluster import EmbeddedCluster
from tests.gateway.running import RunningGateway, running


@pytest.fixture(scope="module")
def gateway(cluster: EmbeddedCluster) -> Iterator[RunningGateway]:
    with running(cluster.bootstrap_servers) as gateway:
        yield gateway
