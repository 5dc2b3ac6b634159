"""Clients of a world. traffic.py is the interface between a world and its clients; producer.py is one producer.

Groups and transactions have packages of their own (../groups, ../transactions); request.py is what they send to brokers.
"""
