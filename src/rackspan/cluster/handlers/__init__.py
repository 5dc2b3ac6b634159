"""Who answers which request: one file a request, one line here.

Begin with metadata.py, then produce.py and fetch.py. A handler turns a request into questions to the core and the answers
into a response; it decides nothing that a broker or the controller decides.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from rackspan.cluster.context.call import Body, Call, Handler
from rackspan.cluster.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_configs,
    alter_partition_reassignments,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    describe_transactions,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    write_txn_markers,
)

UNSUPPORTED_VERSION: Final = 35


INVALID_REQUEST: Final = 42
NAMES_ITSELF_FROM: Final = 3
SOFTWARE_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def api_versions(call: Call) -> Body:
    """ApiVersions (key 18), versions 0-4: this table. Of features the cluster has none to offer.

    From version 3 on a client says which program it is (KIP-511), and must.
    """
    names = ("client_software_name", "client_software_version")
    if call.version >= NAMES_ITSELF_FROM and not all(SOFTWARE_NAME.fullmatch(call.body[name]) for name in names):
        return {"error_code": INVALID_REQUEST, "api_keys": []}
    return _offered()


def refuse_version() -> Body:
    """To a client that asks in a version unknown here: version 0 of the answer, from which it can choose."""
    return {**_offered(), "error_code": UNSUPPORTED_VERSION}


def _offered() -> dict[str, Any]:
    return {
        "api_keys": [
            {"api_key": key, "min_version": handler.lowest_advertised, "max_version": handler.versions[-1]}
            for key, handler in sorted(HANDLERS.items())
        ]
    }


HANDLERS: Final[Mapping[int, Handler]] = {
    # librdkafka takes compression for unsupported unless version 0 is offered; like Kafka 4, we then refuse to speak it.
    0: Handler(range(3, 14), produce.handle, advertised_from=0),
    1: Handler(range(4, 19), fetch.handle),
    2: Handler(range(1, 11), list_offsets.handle),
    3: Handler(range(14), metadata.handle),
    8: Handler(range(2, 10), offset_commit.handle),
    9: Handler(range(1, 10), offset_fetch.handle),
    10: Handler(range(7), find_coordinator.handle),
    11: Handler(range(10), join_group.handle),
    12: Handler(range(5), heartbeat.handle),
    13: Handler(range(6), leave_group.handle),
    14: Handler(range(6), sync_group.handle),
    15: Handler(range(7), describe_groups.handle),
    16: Handler(range(6), list_groups.handle),
    18: Handler(range(5), api_versions),
    19: Handler(range(2, 8), create_topics.handle),
    20: Handler(range(1, 7), delete_topics.handle),
    21: Handler(range(3), delete_records.handle),
    22: Handler(range(6), init_producer_id.handle),
    23: Handler(range(2, 5), offset_for_leader_epoch.handle),
    24: Handler(range(6), add_partitions_to_txn.handle),
    25: Handler(range(5), add_offsets_to_txn.handle),
    26: Handler(range(6), end_txn.handle),
    27: Handler(range(1, 2), write_txn_markers.handle),
    28: Handler(range(6), txn_offset_commit.handle),
    32: Handler(range(1, 5), describe_configs.handle),
    33: Handler(range(3), alter_configs.handle),
    35: Handler(range(1, 5), describe_log_dirs.handle),
    37: Handler(range(4), create_partitions.handle),
    42: Handler(range(3), delete_groups.handle),
    43: Handler(range(3), elect_leaders.handle),
    44: Handler(range(2), incremental_alter_configs.handle),
    45: Handler(range(2), alter_partition_reassignments.handle),
    46: Handler(range(1), list_partition_reassignments.handle),
    47: Handler(range(1), offset_delete.handle),
    55: Handler(range(3), describe_quorum.handle),
    60: Handler(range(3), describe_cluster.handle),
    61: Handler(range(1), describe_producers.handle),
    64: Handler(range(1), unregister_broker.handle),
    65: Handler(range(1), describe_transactions.handle),
    66: Handler(range(2), list_transactions.handle),
    74: Handler(range(2), list_config_resources.handle),
    75: Handler(range(1), describe_topic_partitions.handle),
}
