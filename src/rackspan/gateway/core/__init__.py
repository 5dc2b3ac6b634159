"""The pure part of the gateway: offered APIs, addresses in responses, values of min.insync.racks, and the guard.

Begin with apis.py, then acknowledgement/guard.py. Nothing here reads a clock, a socket or a file.
"""
