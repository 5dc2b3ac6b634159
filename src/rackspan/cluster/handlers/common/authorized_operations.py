"""The operations that a client may perform on a resource: all that Kafka has for it, since no authorizer is configured.

A bit per operation, by the numbers of Kafka's AclOperation (KIP-430). The sets are AclEntry.supportedOperations.
"""

from enum import IntEnum
from typing import Final


class _AclOperation(IntEnum):
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


def _bits(*operations: _AclOperation) -> int:
    return sum(1 << operation for operation in operations)


_Op = _AclOperation
_CONFIGS: Final = (_Op.DESCRIBE_CONFIGS, _Op.ALTER_CONFIGS)

TOPIC_OPERATIONS: Final = _bits(_Op.READ, _Op.WRITE, _Op.CREATE, _Op.DELETE, _Op.ALTER, _Op.DESCRIBE, *_CONFIGS)
GROUP_OPERATIONS: Final = _bits(_Op.READ, _Op.DELETE, _Op.DESCRIBE, *_CONFIGS)
CLUSTER_OPERATIONS: Final = _bits(
    _Op.CREATE, _Op.ALTER, _Op.DESCRIBE, _Op.CLUSTER_ACTION, _Op.IDEMPOTENT_WRITE, *_CONFIGS
)
NOT_REQUESTED: Final = -(2**31)
"""The value where the request does not include operations."""
