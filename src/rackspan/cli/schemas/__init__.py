"""The JSON Schemas of what commands print with -o json, made from the declarations of the documents.

Begin with documents.py, which lists the declarations. Holds no schema of its own: a key, its type and its description stand
where the document is made.
"""

from rackspan.cli.schemas.documents import DECLARED, json_schema, schema_command
from rackspan.cli.schemas.pipeline import OF_THE_PIPELINE

__all__ = ["DECLARED", "OF_THE_PIPELINE", "json_schema", "schema_command"]
