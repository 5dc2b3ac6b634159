"""ListTransactions (key 66), versions 0-2. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class ListTransactionsRequestData(WireStruct):
    __slots__ = ("state_filters", "producer_id_filters", "duration_filter", "transactional_id_pattern")

    def __init__(
        self,
        *,
        state_filters: Sequence[str] = (),
        producer_id_filters: Sequence[int] = (),
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> None:
        self.state_filters = state_filters
        self.producer_id_filters = producer_id_filters
        self.duration_filter = duration_filter
        self.transactional_id_pattern = transactional_id_pattern


class ListTransactionsResponseTransactionState(WireStruct):
    __slots__ = ("transactional_id", "producer_id", "transaction_state")

    def __init__(self, *, transactional_id: str = "", producer_id: int = 0, transaction_state: str = "") -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.transaction_state = transaction_state


class ListTransactionsResponseData(WireStruct):
    __slots__ = ("throttle_time", "error_code", "unknown_state_filters", "transaction_states")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"transaction_states": ListTransactionsResponseTransactionState}

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        error_code: int = 0,
        unknown_state_filters: Sequence[str] = (),
        transaction_states: Sequence[ListTransactionsResponseTransactionState] = (),
    ) -> None:
        self.throttle_time = throttle_time
        self.error_code = error_code
        self.unknown_state_filters = unknown_state_filters
        self.transaction_states = transaction_states
