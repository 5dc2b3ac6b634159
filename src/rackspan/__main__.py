"""python -m rackspan, and the script `rackspan`: the command line, or a gateway without it.

Importing every command takes longer than a gateway needs to start. So `gateway --config FILE [--workers N]` is read here, and
nothing else: the command line (cli/) reads all other lines, and reports what goes wrong. A gateway takes nothing from
rackspan.toml.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path


def gateway_options(words: Sequence[str]) -> tuple[Path, int] | None:
    """The config and the number of workers of a line that starts a gateway; None where the command line has to read it."""
    options = dict(zip(words[1::2], words[2::2], strict=False))
    if words[:1] != ["gateway"] or len(words) != 1 + 2 * len(options) or "--config" not in options:
        return None
    file, workers = options.pop("--config"), options.pop("--workers", "1")
    if options or file.startswith("-") or not workers.isdecimal() or not int(workers):
        return None
    return Path(file), int(workers)


def _show(bootstrap_servers: str) -> None:
    print(f"bootstrap.servers={bootstrap_servers}", flush=True)


def run() -> None:
    """Run the command of this process's arguments, and exit with its code."""
    gateway = None if os.environ.get("RACKSPAN_DEBUG") else gateway_options(sys.argv[1:])
    if gateway is None or sys.stdout is None or sys.stderr is None:
        from rackspan import cli

        cli.run()
        return
    from rackspan.gateway.process import run_gateway

    try:
        run_gateway(*gateway, _show)
    except (Exception, KeyboardInterrupt) as error:
        from rackspan import cli

        sys.exit(cli.report(error))


if __name__ == "__main__":
    run()
