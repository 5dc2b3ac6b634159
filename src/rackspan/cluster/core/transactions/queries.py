"""DescribeTransactions and ListTransactions (KIP-664)."""

from collections.abc import Iterable
from typing import Final

from rackspan.cluster.core.transactions.records import TransactionState
from rackspan.cluster.core.transactions.requests import DescribeTransactionResponse, ListedTransaction
from rackspan.cluster.core.transactions.transaction import Transaction
from rackspan.kafka_bytes.error_codes import ErrorCode

STATE_NAMES: Final = {state: state.name.title().replace("_", "") for state in TransactionState}


def described(transaction: Transaction) -> DescribeTransactionResponse:
    value = transaction.value
    return DescribeTransactionResponse(
        *(ErrorCode.NONE, transaction.transactional_id, STATE_NAMES[value.state], value.timeout_ms),
        *(value.started_ms, value.producer_id, value.producer_epoch),
        topics=dict(value.partitions),
    )


def listed(
    transactions: Iterable[Transaction], now: int, states: frozenset[str], producers: frozenset[int], duration_ms: int
) -> list[ListedTransaction]:
    passing = [
        each
        for each in transactions
        if (not states or STATE_NAMES[each.value.state] in states)
        and (not producers or each.value.producer_id in producers)
        and (duration_ms < 0 or _runs_for(each, now) > duration_ms)
    ]
    named = [ListedTransaction(t.transactional_id, t.value.producer_id, STATE_NAMES[t.value.state]) for t in passing]
    return sorted(named, key=lambda each: each.transactional_id)


def _runs_for(transaction: Transaction, now: int) -> int:
    started = transaction.value.started_ms
    return now - started if started >= 0 else -1
