"""Consumer groups in a world: the core's coordinator in each broker, members that pause, leave and are fenced.

Begin with traffic.py (what runs where), then member.py (the classic protocol from a client's side); judged by
judges/groups.py. mistakes/groups.py holds coordinators that must be caught.
"""
