"""Transactions in a world: producers with zombies, offsets of a group, readers of both isolation levels.

Begin with traffic.py (who runs where), then process.py (the core's broker process, with numbered records), producer.py
and reader.py (the clients); script.py runs a client. Judged by judges/transactions.py; mistakes/transactions.py holds
coordinators and brokers that must be caught.
"""
