"""A link with latency: a process that passes TCP connections on to a port, each byte some milliseconds later.

`python -m benchmarks._far_link PORT` prints its own port, and takes the delay of one direction, in ms, from each line of its input.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_READ_BYTES: Final = 1 << 20
_HELD_PARTS: Final = 64
"""Between reading and writing: a link holds what is on its way, and no more than some megabytes of it."""


class FarLink:
    """The running process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        self.pid = process.pid
        self.port = int(process.stdout.readline())
        self._input = process.stdin

    def set_round_trip(self, milliseconds: float) -> None:
        assert self._input is not None
        self._input.write(f"{milliseconds / 2}\n")
        self._input.flush()


@contextmanager
def far_link(port: int) -> Iterator[FarLink]:
    words = [sys.executable, "-m", "benchmarks._far_link", str(port)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield FarLink(process)
    finally:
        process.kill()
        process.wait(10)


class _Link:
    def __init__(self, port: int) -> None:
        self._port = port
        self._seconds = 0.0

    async def serve(self) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=_READ_BYTES)
        print(server.sockets[0].getsockname()[1], flush=True)
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            self._seconds = float(line) / 1000

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port, limit=_READ_BYTES)
        await asyncio.gather(self._passed(reader, back), self._passed(there, writer), return_exceptions=True)

    async def _passed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        clock = asyncio.get_running_loop().time
        held: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_HELD_PARTS)

        async def receive() -> None:
            part = b"-"
            while part:
                part = await reader.read(_READ_BYTES)
                await held.put((clock() + self._seconds, part))

        receiving = asyncio.create_task(receive())
        try:
            while True:
                due, part = await held.get()
                if (wait := due - clock()) > 0:
                    await asyncio.sleep(wait)
                if not part:
                    return
                writer.write(part)
                await writer.drain()
        finally:
            receiving.cancel()
            writer.close()


if __name__ == "__main__":
    asyncio.run(_Link(int(sys.argv[1])).serve())
