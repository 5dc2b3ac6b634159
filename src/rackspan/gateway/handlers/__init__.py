"""Requests that are read whole: Produce (produce.py), and those of admin clients (admin.py).

Begin with produce.py. Bytes are read and written by net/; no rule is here: that of acknowledgement is in acks/verification.py.
"""
