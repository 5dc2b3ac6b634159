"""min.insync.racks above 1 requires a rack of every broker that it applies to (min.insync.racks, Validation).

The value that counts is the one in effect on the broker: its own dynamic value over the cluster-wide one over the static one.
It is judged when a broker registers and when a broker config changes.
"""

from rackspan.acks.config import ConfigVerdict, SetAt, judge_broker_config
from rackspan.cluster.core.configs import broker_value
from rackspan.cluster.core.controller.context import ControllerContext
from rackspan.cluster.core.metadata import MetadataImage
from rackspan.model import MIN_INSYNC_RACKS, Broker, BrokerId, RackId


def judge_min_insync_racks(
    context: ControllerContext, image: MetadataImage, at: SetAt, broker: BrokerId, rack: RackId | None
) -> ConfigVerdict:
    """The verdict on the value that `image` gives to the broker. The broker need not be registered yet."""
    value = broker_value(image, context.settings, MIN_INSYNC_RACKS, broker).value or "1"
    others = [other for other in image.model_brokers() if other.id != broker]
    return judge_broker_config(value, at, rack, [*others, Broker(broker, rack)])
