"""One list of what to do: risks in their order of repair, then savings of the cluster after these repairs."""

from rackspan.advice.advice import Advice, ranked
from rackspan.advice.measured import LEAST_BYTES_A_MONTH, measured_traffic
from rackspan.advice.risks import repaired, risks
from rackspan.advice.savings import savings
from rackspan.audit import RackPolicy, audit
from rackspan.model import ClusterSnapshot
from rackspan.traffic import Interval, PriceFile


def advise(
    snapshot: ClusterSnapshot,
    policy: RackPolicy = RackPolicy(),
    passed: Interval | None = None,
    prices: PriceFile | None = None,
    least_bytes_a_month: int = LEAST_BYTES_A_MONTH,
) -> list[Advice]:
    """What to do first. `snapshot`: the one of the second reading of `passed`."""
    findings = audit(snapshot, policy).findings
    found = [*risks(snapshot, policy, findings)]
    if passed is not None:
        after = repaired(snapshot, policy, findings)
        traffic = measured_traffic(passed, None if after is snapshot else after)
        found += savings(*traffic, policy, prices, least_bytes_a_month)
    return ranked(found)
