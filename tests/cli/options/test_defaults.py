"""What every option is where it is not given: a plan waits as long, a report looks as far back, as the last release did."""

from rackspan.cli import command_tree
from rackspan.cli.commands import leaf_commands

DEFAULTS = {
    "--assignor": {"optimize"},
    "--brokers": {"6"},
    "--every": {"restart watch 1.0", "pipeline follow 10.0", "acks watch 15.0"},
    "--min-insync-racks": {"1"},
    "--moves-per-step": {"1000"},
    "--out": {"demo"},
    "--log-format": {f"pipeline {verb} text" for verb in ("collect", "follow", "rebuild", "run")},
    "--output": {"human", "place plan json", "streams assign json"},
    "--patience": {"300"},
    "--placer": {"balanced", "reassign generate rack-alternated"},
    "--racks": {"3"},
    "--seconds": {"60.0"},
    "--survive": {"rack"},
    "--timeout": {"30000"},
    "--unracked": {"shared"},
    "--vacuum-hours": {"168.0"},
}
"""By option: its default, with the command where commands differ."""


def test_options_have_these_defaults() -> None:
    found: dict[str, set[str]] = {}
    for words, command in leaf_commands(command_tree()):
        for parameter in command.params:
            option = max(parameter.opts, key=len)
            default = getattr(parameter.default, "value", parameter.default)
            if parameter.param_type_name == "option" and default not in (None, False, ()):
                alone = str(default)
                known = DEFAULTS.get(option, set())
                found.setdefault(option, set()).add(alone if alone in known else f"{words} {default}")
    assert found == DEFAULTS
