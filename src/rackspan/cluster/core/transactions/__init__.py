"""Transactions, as Kafka's transaction coordinator runs them: producer epochs, and how a transaction ends.

Begin with transaction.py (the states), then coordinator.py (the door); records.py is what it keeps in
`__transaction_state`. What a transaction wrote, and whether readers see it yet, is the partition log's to know.
"""

from rackspan.cluster.core.transactions.coordinator import TransactionCoordinator, WriteMarker
from rackspan.cluster.core.transactions.records import TransactionState
from rackspan.cluster.core.transactions.settings import TransactionSettings

__all__ = ["TransactionCoordinator", "TransactionSettings", "TransactionState", "WriteMarker"]
