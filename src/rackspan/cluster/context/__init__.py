"""What a request handler receives: the request (call.py), and the broker's state that it may read or change.

Begin with call.py. Nothing here imports a handler or the broker host.
"""
