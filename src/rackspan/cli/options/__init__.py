"""The options that commands share: shared.py declares each once, flags.py groups them, settings.py reads rackspan.toml."""

from rackspan.cli.options.flags import with_groups
from rackspan.cli.options.shared import (
    DEFAULT_TIMEOUT_MS,
    Apply,
    CommandConfig,
    Judging,
    Metrics,
    Output,
    OutputFormat,
    Placer,
    Placing,
    Racks,
    Running,
    Timeout,
    TopicPattern,
    Warehouse,
    Where,
    pairs,
)

__all__ = [
    "DEFAULT_TIMEOUT_MS",
    "Apply",
    "CommandConfig",
    "Judging",
    "Metrics",
    "Output",
    "OutputFormat",
    "Placer",
    "Placing",
    "Racks",
    "Running",
    "Timeout",
    "TopicPattern",
    "Warehouse",
    "Where",
    "pairs",
    "with_groups",
]
