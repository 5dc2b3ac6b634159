"""What must hold, judged from outside: evidence.py gathers, rules.py judges every step, survival.py asks what is left.

groups.py holds a group's members to what they are told, reassigning.py the controller to what an operator asked for.
"""
