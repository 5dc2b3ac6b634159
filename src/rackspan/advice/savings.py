"""Advice that keeps bytes in their rack: today's flows beside those with other settings, assignments, replicas or leaders.

    of each group:  client.rack ──► gateways' rack ──► another assignor or strategy
    of each topic:  a replica in each rack ──► fewer replicas ──► leaders held in racks

Each is compared with what all before it leave, as far as they are recommended, so that no byte is saved twice. What saves less
than a threshold, and what the planner refuses or the audit finds fault with afterwards, is left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rackspan.advice.advice import Advice
from rackspan.advice.measured import LEAST_BYTES_A_MONTH, MeasuredTraffic, Terms
from rackspan.advice.of_groups import ReadingGroup, group_savings
from rackspan.advice.of_topics import passing_topics, topic_savings
from rackspan.audit import RackPolicy
from rackspan.clients import ClientFinding
from rackspan.traffic import PriceFile


def savings(
    traffic: MeasuredTraffic,
    findings: Sequence[ClientFinding],
    policy: RackPolicy = RackPolicy(),
    prices: PriceFile | None = None,
    least_bytes_a_month: int = LEAST_BYTES_A_MONTH,
) -> Iterator[Advice]:
    """`findings` are those of the groups in `traffic`."""
    terms = Terms(traffic.seconds, prices, least_bytes_a_month)
    groups: list[ReadingGroup] = []
    for reads in traffic.reads:
        of_group = [each for each in findings if each.group == reads.group.group_id]
        advised, group = group_savings(traffic, reads, of_group, terms)
        groups.append(group)
        yield from advised
    cluster = traffic.snapshot
    for topic in passing_topics(traffic, policy, groups, terms):
        advised, changed = topic_savings(replace(topic, cluster=cluster), terms)
        cluster = changed.cluster
        yield from advised
