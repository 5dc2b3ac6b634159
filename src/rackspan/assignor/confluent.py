"""Settings of confluent-kafka's consumers: `Consumer({…, **in_rack("eu-1a")})`.

librdkafka takes no assignor from Python. Since 2.3 two of its own look at racks: range and cooperative-sticky (KIP-881).
"""

from collections.abc import Mapping

from rackspan.errors import UsageError


def in_rack(client_rack: str, *, cooperative: bool = False, group_protocol: str = "classic") -> Mapping[str, str]:
    """The rack, for fetching from its replicas, and an assignor that looks at racks. Errors: UsageError.

    `cooperative` keeps reading during a rebalance (KIP-429). With `group_protocol="consumer"` (KIP-848) the group's coordinator
    assigns partitions, by assignors that look at no racks: then only the fetches are in the rack.
    """
    if not client_rack:
        raise UsageError("client_rack is empty; give the rack of this consumer, as brokers name it in broker.rack")
    if group_protocol == "consumer" and not cooperative:
        return {"client.rack": client_rack, "group.protocol": group_protocol}
    if group_protocol != "classic":
        raise UsageError(
            f"group_protocol {group_protocol!r} with cooperative={cooperative}; give classic, or consumer without "
            "cooperative: its rebalances keep reading always"
        )
    strategy = "cooperative-sticky" if cooperative else "range"
    return {"client.rack": client_rack, "partition.assignment.strategy": strategy}
