"""A client's connection and its broker's: bytes in both directions, requests and responses that are read whole.

Begin with session.py, then byte_flow.py. It decides about no request: that is done by the functions of `Shared.takes`.
"""
