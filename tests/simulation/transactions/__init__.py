"""Transactions in a world: producers with zombies, offsets of a group, readers of both isolation levels.

Begin with traffic.py (who runs where), then process.py (what runs beside the core's broker in one process), producer.py
and reader.py (the clients); script.py runs a client. Judged by judges/transactions.py; mistakes/transactions.py holds
coordinators and brokers that must be caught.
"""
