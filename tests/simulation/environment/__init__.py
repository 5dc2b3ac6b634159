"""What a world consists of beside brokers and clients: clock, network, machines with disks, parameters, random generators.

Begin with clock.py (events in order of time), then network.py (delay, loss, repetition) and machine.py (disk and process).
parameters.py draws racks, thresholds and timers from the seed; assumptions.py adds to the controller's rules what a kind
of world lets it rely on; trace.py hashes the run. Nothing here decides what Kafka would.
"""
