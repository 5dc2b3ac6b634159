"""The assignment problem as a JSON document, read strictly: a mistake is refused in one line that names its path.

Begin with documents.py, which declares its keys and types, and problem.py; configs.py, clients.py, tasks.py and partitions.py
read one part each. The document is described in docs/formats.md. Reads no file and assigns nothing.
"""

from rackspan.streams.formats.problem import from_document

__all__ = ["from_document"]
