"""The handler of each API: one module per request, named as the API in wire/apis.py.

Begin with metadata.py, then produce.py and fetch.py. A handler translates a request of rackspan.wire.messages into calls of
the core, and what the core returns into a response. It decides nothing that a broker or the controller decides.

A new API takes its key and versions in wire/apis.py, a run of tools/wire_messages.py, and a module here.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from rackspan.cluster.context import Handler
from rackspan.wire.apis import SERVED, ApiKey


def _handler(key: ApiKey) -> Handler:
    handle: Handler = import_module(f"{__name__}.{key.name.lower()}").handle
    return handle


HANDLERS: Final[Mapping[int, Handler]] = {key: _handler(key) for key in SERVED}
