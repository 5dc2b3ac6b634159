"""What a broker does as a leader: appends, high watermark, ISR, its followers' fetches.

Begin with leader.py (one partition), then leaderships.py (all that one broker leads). isr.py requests changes of the ISR;
fetch_sessions.py serves followers. It never decides who leads: the controller does.
"""
