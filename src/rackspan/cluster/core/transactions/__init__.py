"""Transactions, as Kafka's transaction coordinator runs them: producer epochs, and how a transaction ends.

Begin with transaction.py (the states), then coordinator.py (entry points); records.py is the format of
`__transaction_state`. The batches of a transaction, and whether consumers may read them, are in the partition log.
It never reads the records of a transaction.
"""

from rackspan.cluster.core.transactions.coordinator import TransactionCoordinator, TransactionSettings, WriteMarker
from rackspan.cluster.core.transactions.records import TransactionState

__all__ = ["TransactionCoordinator", "TransactionSettings", "TransactionState", "WriteMarker"]
