"""Connected sockets for sessions whose client and broker are the test's own."""

import socket


class PairSocket(socket.socket):
    """One end of a pair that says where its peer is, as a client's socket does."""

    def getpeername(self) -> tuple[str, int]:
        return "127.0.0.1", 1


def pair() -> tuple[PairSocket, socket.socket]:
    """The gateway's end and the test's, neither blocking."""
    one, other = socket.socketpair()
    one.setblocking(False)
    other.setblocking(False)
    return PairSocket(fileno=one.detach()), other
