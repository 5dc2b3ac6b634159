"""The options that commands share: shared.py declares each once, flags.py groups them, settings.py reads rackspan.toml."""

from rackspan.cli.options.flags import with_option_groups
from rackspan.cli.options.shared import (
    DEFAULT_TIMEOUT_MS,
    Apply,
    ClusterOptions,
    CommandConfig,
    MetricsOptions,
    Output,
    OutputFormat,
    PlacementOptions,
    Placer,
    PolicyOptions,
    RackLocatorOptions,
    SourceOptions,
    Timeout,
    TopicPattern,
    Warehouse,
    pairs,
)

__all__ = [
    "DEFAULT_TIMEOUT_MS",
    "Apply",
    "ClusterOptions",
    "CommandConfig",
    "MetricsOptions",
    "Output",
    "OutputFormat",
    "PlacementOptions",
    "Placer",
    "PolicyOptions",
    "RackLocatorOptions",
    "SourceOptions",
    "Timeout",
    "TopicPattern",
    "Warehouse",
    "pairs",
    "with_option_groups",
]
