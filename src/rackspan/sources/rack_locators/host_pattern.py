r"""`host-pattern`: the rack is part of the host's name, `pattern=-(?P<rack>us-east-1[a-z])-`.

The group named `rack`, or else the first group, is the rack. A host that does not match has none.
"""

import re

from rackspan.errors import UsageError
from rackspan.model.ids import BrokerId, RackId
from rackspan.sources.rack_locator import ClusterView, Properties, refuse_unknown, required


class HostPattern:
    def __init__(self, properties: Properties) -> None:
        refuse_unknown("host-pattern", properties, frozenset({"pattern"}))
        pattern = required("host-pattern", properties, "pattern")
        try:
            self._pattern = re.compile(pattern)
        except re.error as error:
            raise UsageError(
                f"rack locator host-pattern: {pattern!r} is not a regular expression: {error}; write one such as ^(?P<rack>[a-z]+)-"
            ) from None
        if not self._pattern.groups:
            raise UsageError(f"rack locator host-pattern: {pattern!r} has no group; put the rack in (…)")
        self._group = self._pattern.groupindex.get("rack", 1)

    def rack_info(self, cluster: ClusterView) -> dict[BrokerId, RackId]:
        matches = {broker.id: self._pattern.search(broker.host or "") for broker in cluster.brokers}
        racks = {broker: match.group(self._group) for broker, match in matches.items() if match is not None}
        # An optional group that did not match, or matched nothing, gives no rack.
        return {broker: RackId(rack) for broker, rack in racks.items() if rack}
