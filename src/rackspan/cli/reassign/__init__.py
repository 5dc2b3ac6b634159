"""rackspan reassign: plan.py makes and judges plans, run.py carries them out, cancel.py ends them.

They decide nothing.
"""

from rackspan.cli.reassign import cancel, run
from rackspan.cli.reassign.plan import app

app.command("apply")(run.apply)
app.command("verify")(run.verify)
app.command("cancel")(cancel.cancel)
app.command("undo")(run.undo)
