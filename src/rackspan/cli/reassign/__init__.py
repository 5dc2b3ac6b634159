"""rackspan reassign: plan.py makes and checks plans, run.py executes and verifies them, progress.py reports a run."""
