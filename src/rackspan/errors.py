"""The exceptions that rackspan raises for mistakes outside of it.

    RackspanError                     one line: which thing, why, what to do next
    ├── UsageError                    a flag, config key or spec file with an impossible value
    ├── InvalidSnapshot               a snapshot that contradicts itself or its format
    ├── InvalidProblem                an assignment problem (KIP-925) that contradicts itself or its format
    ├── InvalidRecord                 a coordinator's record that is cut, damaged or of an unknown version
    ├── MalformedBytes                bytes that end too early or contradict themselves; decoders raise an error of their own
    ├── InvalidGroup                  a group's user data is not from Kafka Streams, or malformed
    ├── UnreadableRegistration        a broker's registration JSON that this reader does not accept (KIP-36)
    ├── InvalidFlow                   a flow network that no flow can satisfy, or whose costs exceed 64 bits
    ├── UnprovenResult                a solver's result failed its check: a bug, never the user's mistake
    ├── InvalidReassignment           a reassignment or topics file that breaks its format or contradicts itself
    ├── InvalidJournal                a journal is malformed, or belongs to another plan
    ├── ReassignmentStopped           the cluster is not what the plan assumed; running steps continue, none is started
    ├── RestartStopped                a broker did not come back, or a restart cannot go on; nothing more is stopped
    ├── InvalidWarehouse              a folder that is no warehouse of the pipeline, or one of another version
    │   └── WarehouseBusy             another run is at work in it; a later try may succeed
    ├── UnreadableStore               a disk or an object store does not give what may be whole; a later try may succeed
    ├── SourceError                   a cluster could not be read or changed
    │   ├── ClusterUnreachable        no broker responded in time
    │   │   └── OtherBroker           another broker responds at a broker's address
    │   ├── ClusterUnauthorized       a right is missing; names it
    │   └── ClusterRequestFailed      it responded with an error
    │       └── UnprovableBroker      a broker gives no proof which one it is
    ├── ReplicaPlacementException     a placer found no placement, or returned an impossible one (KIP-660)
    │   ├── InvalidPartitions         no such number of partitions
    │   ├── InvalidReplicationFactor  more replicas than usable brokers, or none
    │   └── PartialRacks              some brokers have a rack and some have none, and racks are enforced (KIP-36)
    ├── KafkaProcessFailed            a Kafka that rackspan started ended or never became ready
    ├── RackLocatorFailed             a rack locator does not exist, or returned no racks
    ├── RetriableProduceError         a produce with acks=all was refused; sending again is right (acks.produce_error)
    │   ├── NotEnoughReplicas         and …AfterAppend: written, but not acknowledged
    │   └── NotEnoughRacks            and …AfterAppend
    ├── WireError                     bytes from a client that are not what the protocol says
    │   ├── MalformedRequest          the request cannot be read; its connection is closed
    │   └── CorruptRecords            the request can be read, but not its records; CORRUPT_MESSAGE
    ├── UnknownMetadataVersion        a record of KRaft's metadata log of a Kafka later than the code reads
    └── MissingRequirement            Java, an extra or a package is not installed; names it

An expected outcome (a finding, a refusal by a rule) is a value, never an exception.
"""

from importlib import import_module
from typing import Any, ClassVar, Final


class RackspanError(Exception):
    """A mistake outside rackspan, with a message of one line."""


class UsageError(RackspanError):
    """A flag, a config key or a spec file has an impossible value."""


class InvalidSnapshot(RackspanError):
    """A snapshot breaks its format or contradicts itself."""


class InvalidProblem(RackspanError):
    """An assignment problem breaks its format or contradicts itself."""


class InvalidGroup(RackspanError):
    """A group is not one of Kafka Streams, or its members' user data cannot be read."""


class InvalidFlow(RackspanError):
    """A flow network is malformed, cannot be satisfied, or has costs beyond 64 bits."""


class UnprovenResult(RackspanError):
    """A solver's result failed the check that proves it, and is not returned."""


class InvalidReassignment(RackspanError):
    """A reassignment file, or a file of topics to move, breaks its format or contradicts itself."""


class MalformedBytes(RackspanError):
    """Bytes that end too early or contradict themselves. Decoders of messages raise an error of their own in its place."""


class InvalidRecord(RackspanError):
    """A record of a coordinator's own topic that cannot be read."""


class InvalidJournal(RackspanError):
    """A file is no journal of the kind that is expected, or of another plan or version."""


class ReassignmentStopped(RackspanError):
    """The cluster is not, or no longer, what a plan assumed; nothing more is started."""


class RestartStopped(RackspanError):
    """A rolling restart cannot go on: a broker did not come back, or its command failed. Nothing more is stopped."""


class InvalidWarehouse(RackspanError):
    """A folder is not a rackspan warehouse, or was written by another version."""


class WarehouseBusy(InvalidWarehouse):
    """Another run is at work in the warehouse, or committed at the same time; a later try may succeed."""


class UnreadableStore(RackspanError):
    """A disk or an object store does not give a file: it throttles, refuses or does not respond. What is in the file is not known.

    It is no InvalidWarehouse: nothing is left out, given up or made again because of it.
    """


class SourceError(RackspanError):
    """A cluster could not be read or changed."""


class ClusterUnreachable(SourceError):
    """No broker responded in time."""


class ClusterUnauthorized(SourceError):
    """The cluster refused; the message names the right that is missing."""


class ClusterRequestFailed(SourceError):
    """The cluster responded to a request with an error."""


class OtherBroker(ClusterUnreachable):
    """Another broker, of this cluster or of another, responds at the address of a broker."""


class UnprovableBroker(ClusterRequestFailed):
    """A broker gives no proof which one it is, so that its log counts for nothing; names the right or the setting."""


class ReplicaPlacementException(RackspanError):
    """The replica placer could not compute a placement for the topic or partition (KIP-660, Public Interfaces 4).

    Where it repeats a complaint of Kafka's own placers, the message is Kafka's, letter for letter.
    """

    retriable: ClassVar[bool] = False
    """With the same brokers a placer fails again."""


class InvalidPartitions(ReplicaPlacementException):
    """Kafka's InvalidPartitionsException."""


class InvalidReplicationFactor(ReplicaPlacementException):
    """Kafka's InvalidReplicationFactorException."""


class PartialRacks(ReplicaPlacementException):
    """What Kafka calls AdminOperationException here: a rack is set on some brokers only."""


class KafkaProcessFailed(RackspanError):
    """A Kafka process of ours went wrong. The line says why; `log_tail` is the end of its log, for --debug."""

    def __init__(self, message: str, log_tail: str = "") -> None:
        super().__init__(message)
        self.log_tail = log_tail


class RackLocatorFailed(RackspanError):
    """A rack locator cannot be found or created, or returned no racks."""


class RetriableProduceError(RackspanError):
    """A produce was refused for now; the same request may succeed later (Kafka's RetriableException)."""


class NotEnoughReplicas(RetriableProduceError):
    """Fewer replicas in sync than min.insync.replicas; nothing was written."""


class NotEnoughReplicasAfterAppend(RetriableProduceError):
    """Written, but fewer replicas in sync than min.insync.replicas when it was to be acknowledged."""


class NotEnoughRacks(RetriableProduceError):
    """In-sync replicas on fewer racks than min.insync.racks; nothing was written."""


class NotEnoughRacksAfterAppend(RetriableProduceError):
    """Written, but in-sync replicas on fewer racks than min.insync.racks when it was to be acknowledged."""


class WireError(RackspanError):
    """Bytes from a client that violate the protocol."""


class UnreadableRegistration(RackspanError):
    """A broker's registration in ZooKeeper that its reader does not accept: its version or its form."""


class MalformedRequest(WireError):
    """A request that cannot be read; what follows it on the same connection cannot be trusted either."""


class CorruptRecords(WireError):
    """Records that cannot be stored: cut off, of an unknown version, or with a wrong CRC."""


class UnknownMetadataVersion(RackspanError):
    """A record of KRaft's metadata log, or its metadata.version, of a Kafka later than the code reads."""


class MissingRequirement(RackspanError):
    """Something rackspan needs is not installed; the message says what to install."""


EXTRAS: Final = {
    "deltalake": "warehouse",
    "pyarrow": "warehouse",
    "pyspark": "spark",
    "confluent_kafka": "clients",
    "aiokafka": "clients",
}
"""The extra that installs each package outside the default install."""


def required_module(name: str, purpose: str) -> Any:
    """A module of an extra, imported. Errors: MissingRequirement, naming the extra; `purpose`: a plan is computed with it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise missing_extra(error, purpose) or error from None


def missing_extra(error: ModuleNotFoundError, purpose: str = "this command needs it") -> "MissingRequirement | None":
    """An import that failed, as the line that names the extra; None if the module belongs to no extra."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return None
    return MissingRequirement(f"{package} is not installed, and {purpose}; {how_to_install(EXTRAS[package])}")


def how_to_install(extra: str) -> str:
    """The command that installs an extra: from a checkout of the repository, until rackspan is published."""
    return f"pip install '.[{extra}]' in a checkout of rackspan"


def cause(error: Exception) -> str:
    """An exception of another library in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
