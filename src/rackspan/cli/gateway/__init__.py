"""rackspan gateway, and its commands check and confirm. None decides anything: the package gateway does."""

from pathlib import Path
from typing import Annotated, Literal, TypedDict

import typer
from rich.console import RenderableType

from rackspan.cli import options, output
from rackspan.cli.exit_codes import finish
from rackspan.cli.help import CommandGroup
from rackspan.cli.options.given import Given
from rackspan.text import count_noun


class GatewayCheckDocument(TypedDict):
    check: str
    level: Literal["ok", "warning", "failure"]
    reason: str


class GatewayChecks(TypedDict):
    """Whether a gateway would work."""

    checks: list[GatewayCheckDocument]


class RecordedValue(TypedDict):
    place: str
    min_insync_racks: int


class RegisteredGatewayDocument(TypedDict):
    gateway: str
    mode: str | None
    release: str | None
    silent: bool
    removed: bool


class GatewayConfirmation(TypedDict):
    """The config topic before it was confirmed. With `applied` it is confirmed now, and gateways that are removed are removed."""

    config_topic: str
    confirmed: bool
    applied: bool
    values: list[RecordedValue]
    gateways: list[RegisteredGatewayDocument]


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


@app.command()
def confirm(
    context: typer.Context,
    config: ConfigFile = None,
    gone: Annotated[
        list[str] | None,
        typer.Option("--gone", metavar="GATEWAY", help="A registered gateway that is gone for good; may be repeated."),
    ] = None,
    apply: options.Apply = False,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Confirm that the config topic has every value of min.insync.racks: gateways warn of a topic that was created until then.

    Shows its values and the gateways that are registered in it. Nothing is written without --apply.
    """
    file = _one_config(context, config)
    from rackspan.daemon_threads import run
    from rackspan.gateway.config import read_config
    from rackspan.gateway.confirm import confirm as confirmed

    removed = gone or []
    content = run(confirmed(read_config(file), removed, apply=apply))
    document: GatewayConfirmation = {
        "config_topic": content.topic,
        "confirmed": content.confirmed,
        "applied": apply,
        "values": [{"place": place, "min_insync_racks": racks} for place, racks in sorted(content.values.items())],
        "gateways": [
            {
                "gateway": name,
                "mode": None if gateway.registration is None else gateway.registration.mode.value,
                "release": None if gateway.registration is None else gateway.registration.release,
                "silent": gateway.silent,
                "removed": name in removed,
            }
            for name, gateway in sorted(content.gateways.items())
        ],
    }
    output.write(
        document,
        output_format,
        _page(document),
        output.Rows(("place", "min_insync_racks"), document["values"]),
    )
    raise finish(to_act_on=not apply and bool(removed or not content.confirmed))


def _page(document: GatewayConfirmation) -> RenderableType:
    """A table of the topic's records, and what is written or would be."""
    values = [
        ("value", shown["place"], f"min.insync.racks {shown['min_insync_racks']}") for shown in document["values"]
    ]
    gateways = [
        ("gateway", shown["gateway"], _registered(shown, applied=document["applied"])) for shown in document["gateways"]
    ]
    would = "" if document["applied"] else "would be "
    if document["confirmed"]:
        state = "was confirmed before"
    else:
        state = f"{would}confirmed with {count_noun(len(values), 'value')}"
    rows = [*values, *gateways, ("config topic", document["config_topic"], state)]
    return output.table(("record", "of", "content"), rows)


def _registered(gateway: RegisteredGatewayDocument, *, applied: bool) -> str:
    shown = f"mode {gateway['mode'] or 'unknown'}, release {gateway['release'] or 'unknown'}"
    silent = ", silent" if gateway["silent"] else ""
    removed = "" if not gateway["removed"] else ", removed" if applied else ", would be removed"
    return f"{shown}{silent}{removed}"


def _one_config(context: typer.Context, config: Path | None) -> Path:
    """The config named before or after the command. Errors: BadParameter for none and for two."""
    before = None if context.parent is None else context.parent.params.get("config")
    if config is not None and before is not None:
        raise typer.BadParameter("--config is given twice; leave one of them out", ctx=context)
    named = config or before
    if named is None:
        raise typer.BadParameter("--config FILE is missing", ctx=context)
    return Path(named)
