"""Transactions, as Kafka's transaction coordinator runs them."""
