"""What the Python processes that a test starts are given on their path."""
