"""What commands print: documents.py writes to standard output, messages.py to standard error, tables.py draws, settings_in_force.py
has the settings by which a command judges.

A page is made for the width of the terminal, piped for COLUMNS or 100 columns: a long table that does not fit becomes several, one
with sentences blocks of `name  value` lines.
"""

from typing import TYPE_CHECKING

from rackspan.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackspan.cli.output.documents import (
        Rows,
        as_json,
        flush,
        write,
        write_json_array,
        write_line,
        write_page,
        write_text,
    )
    from rackspan.cli.output.messages import (
        begin_log,
        discard_standard_output,
        fail,
        going_on,
        note,
        open_standard_streams,
        stderr_console,
        warn,
        warn_of,
    )
    from rackspan.cli.output.printed_commands import runnable
    from rackspan.cli.output.settings_in_force import SettingsInForce, note_settings, read_plan_file, with_settings
    from rackspan.cli.output.tables import cluster_line, page, table, unread_lines, whole
else:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "documents": (
                "Rows",
                "as_json",
                "flush",
                "write",
                "write_json_array",
                "write_line",
                "write_page",
                "write_text",
            ),
            "messages": (
                "begin_log",
                "discard_standard_output",
                "fail",
                "going_on",
                "note",
                "open_standard_streams",
                "stderr_console",
                "warn",
                "warn_of",
            ),
            "printed_commands": ("runnable",),
            "settings_in_force": ("SettingsInForce", "note_settings", "read_plan_file", "with_settings"),
            "tables": ("cluster_line", "page", "table", "unread_lines", "whole"),
        },
    )

__all__ = [
    "Rows",
    "SettingsInForce",
    "as_json",
    "begin_log",
    "cluster_line",
    "discard_standard_output",
    "fail",
    "flush",
    "going_on",
    "note",
    "note_settings",
    "open_standard_streams",
    "page",
    "read_plan_file",
    "runnable",
    "stderr_console",
    "table",
    "unread_lines",
    "warn",
    "warn_of",
    "whole",
    "with_settings",
    "write",
    "write_json_array",
    "write_line",
    "write_page",
    "write_text",
]
