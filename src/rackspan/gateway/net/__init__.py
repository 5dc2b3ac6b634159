"""Sockets of the gateway. Begin with session.py (one client's connection), then channel.py (one socket)."""
