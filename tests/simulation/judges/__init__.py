"""What must hold, judged from outside. evidence.py gathers, rules.py judges every step, survival.py asks what is left."""
