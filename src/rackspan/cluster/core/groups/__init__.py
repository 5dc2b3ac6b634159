"""Classic consumer groups, as Kafka's group coordinator runs them."""
