"""rackspan acks: harden.py sets what guarantees racks on brokers, watch.py reports what is guaranteed now.

They decide nothing.
"""

from rackspan.cli.acks import watch
from rackspan.cli.acks.harden import app

app.command("watch")(watch.watch)
