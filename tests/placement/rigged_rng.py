"""RandomGenerator that always fall on 0: the worked examples in Kafka's comments are drawn with them."""

import numpy as np

from rackspan.model.partitions import Int64s


class ZeroRng:
    def next_int(self, bound: int) -> int:
        return 0

    def next_ints(self, bounds: Int64s) -> Int64s:
        return np.zeros_like(bounds)
