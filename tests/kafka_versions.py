"""The release of Apache Kafka that the tests run on: RACKSPAN_KAFKA=4.1.0 chooses it, the newest by default."""

import os
from typing import Final

from rackspan.kafka_process import DEFAULT_VERSION, TESTED_VERSIONS

KAFKA: Final = os.environ.get("RACKSPAN_KAFKA", DEFAULT_VERSION)

OLDEST: Final = TESTED_VERSIONS[0]
