"""Print docs/tables.md, drawn from the schemas of the pipeline's tables."""

import sys

from rackspan.pipeline import schemas

sys.stdout.write(schemas.document())
