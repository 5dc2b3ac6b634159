"""Clients of a gateway, from a listener to a session: listeners, TLS, limits, and the end of connections.

Begin with connections.py. It reads no request: what a session does with bytes is in net/.
"""
