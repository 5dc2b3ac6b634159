"""Runs the core's brokers and controller in one asyncio event loop: processes, links between them, disks and clock.

Begin with assembly.py (one cluster), then broker_host.py (one broker). Decides nothing that core/ decides.
"""
