"""Sockets and bytes: a broker's port, one client's connection, and the dispatch of a request to its handler.

Begin with connection.py, then dispatch.py. Responses leave in the order of the requests; malformed bytes close their own connection.
"""
