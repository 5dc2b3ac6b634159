"""Functions that several request handlers share, grouped by what they serve: topics, admin requests, groups, transactions.

A function used by one handler stays in that handler's file.
"""
