"""The options that commands share: settings_table.py, shared.py and policy.py declare each once, flags.py groups them.

settings_file.py reads rackspan.toml, settings.py and given.py decide which value counts, input_files.py reads the files that
options name, quantities.py sizes and rates.
Nothing here reads a cluster.
"""

from rackspan.cli.options.flags import with_option_groups
from rackspan.cli.options.fleet import FleetOptions
from rackspan.cli.options.input_files import STANDARD_STREAM, read_file, standard_input
from rackspan.cli.options.policy import PolicyOptions, SurvivalOptions
from rackspan.cli.options.shared import (
    DEFAULT_TIMEOUT_MS,
    AllowFewerRacks,
    Apply,
    ClusterName,
    ClusterOptions,
    CommandConfig,
    Counters,
    CountersOfBrokers,
    ExcludeBrokers,
    ExclusionOptions,
    MetricsOptions,
    Networks,
    Output,
    OutputFormat,
    PlacementOptions,
    Placer,
    Prices,
    RackLocatorOptions,
    SourceOptions,
    Timeout,
    TopicPattern,
    Unracked,
    Warehouse,
    cluster_address,
    ids,
    networks,
    pairs,
    refuse_if_none_match,
    topic_filter,
)

__all__ = [
    "DEFAULT_TIMEOUT_MS",
    "STANDARD_STREAM",
    "AllowFewerRacks",
    "Apply",
    "ClusterName",
    "ClusterOptions",
    "CommandConfig",
    "Counters",
    "CountersOfBrokers",
    "ExcludeBrokers",
    "ExclusionOptions",
    "FleetOptions",
    "MetricsOptions",
    "Networks",
    "Output",
    "OutputFormat",
    "PlacementOptions",
    "Placer",
    "PolicyOptions",
    "Prices",
    "RackLocatorOptions",
    "SourceOptions",
    "SurvivalOptions",
    "Timeout",
    "TopicPattern",
    "Unracked",
    "Warehouse",
    "cluster_address",
    "ids",
    "networks",
    "pairs",
    "read_file",
    "refuse_if_none_match",
    "standard_input",
    "topic_filter",
    "with_option_groups",
]
