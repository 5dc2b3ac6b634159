"""The decisions of the gateway: which requests it reads, what it rewrites, and when it acknowledges.

Pure: no socket, no clock. The simulation in tests/gateway/ drives the acknowledgement rule with a virtual clock.
"""
