"""The gateway as a client of the cluster behind it: its own connections, samples of the ISR, and the config topic."""
