"""When a produce through the gateway is refused, forwarded, held and acknowledged.

Begin with guard.py, which applies acks/verification.py to all requests of a process. Pure: nothing here reads a clock or a socket.
"""
