"""When a produce through the gateway is refused, forwarded, held and acknowledged. Begin with guard.py, then rules.py and ../../../acks/log_ends.py."""
