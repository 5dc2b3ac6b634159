"""The embedded cluster's pure core."""
