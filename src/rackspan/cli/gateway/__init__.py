"""rackspan gateway, and rackspan gateway check. Neither decides anything: the package gateway does."""

from pathlib import Path
from typing import Annotated, Literal, TypedDict

import typer

from rackspan.cli import options, output
from rackspan.cli.exit_codes import finish
from rackspan.cli.help import CommandGroup
from rackspan.cli.options.given import Given


class GatewayCheckDocument(TypedDict):
    check: str
    level: Literal["ok", "warning", "failure"]
    reason: str


class GatewayChecks(TypedDict):
    """Whether a gateway would work."""

    checks: list[GatewayCheckDocument]


app = CommandGroup()

ConfigFile = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="The gateway's config, TOML.")]


@app.callback(invoke_without_command=True)
def gateway(
    context: typer.Context,
    config: ConfigFile = None,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", min=1, help="Processes that share the listeners' ports.")
    ] = 1,
) -> None:
    """Run a gateway that holds acknowledgements to min.insync.racks, until SIGTERM or Ctrl-C. SIGHUP reads the config again.

    Prints bootstrap.servers=… for clients once they may connect. Exits 0 when it is ended, 1 where it cannot start.
    """
    if context.invoked_subcommand is not None:
        if Given.of(context).by_flag("workers"):
            raise typer.BadParameter("--workers: only a gateway that runs has workers; leave it out", ctx=context)
        return
    if config is None:
        raise typer.BadParameter("--config FILE is missing", ctx=context)
    from rackspan.gateway.process import run_gateway

    run_gateway(config, workers, _show)


def _show(bootstrap_servers: str) -> None:
    typer.echo(f"bootstrap.servers={bootstrap_servers}")
    output.flush()


@app.command()
def check(
    context: typer.Context, config: ConfigFile = None, output_format: options.OutputFormat = options.Output.HUMAN
) -> None:
    """Whether a gateway with this config will work before this cluster. Nothing is started or changed."""
    file = _one_config(context, config)
    from rackspan.daemon_threads import run
    from rackspan.gateway.check import CheckLevel, check_cluster
    from rackspan.gateway.config import read_config

    results = run(check_cluster(read_config(file)))
    document: GatewayChecks = {
        "checks": [{"check": result.check, "level": result.level.value, "reason": result.reason} for result in results]
    }
    rows = [(result.level.value, result.check, result.reason) for result in results]
    columns = ("check", "level", "reason")
    output.write(
        document,
        output_format,
        output.table(("result", "check", "reason"), rows),
        output.Rows(columns, document["checks"]),
    )
    levels = {result.level for result in results}
    raise finish(impossible=CheckLevel.FAILURE in levels, to_act_on=CheckLevel.WARNING in levels)


def _one_config(context: typer.Context, config: Path | None) -> Path:
    """The config named before or after `check`. Errors: BadParameter for none and for two."""
    before = None if context.parent is None else context.parent.params.get("config")
    if config is not None and before is not None:
        raise typer.BadParameter("--config is given twice; leave one of them out", ctx=context)
    named = config or before
    if named is None:
        raise typer.BadParameter("--config FILE is missing", ctx=context)
    return Path(named)
