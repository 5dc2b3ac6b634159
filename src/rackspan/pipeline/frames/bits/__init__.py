"""Two tables in Spark's own columns instead of Arrow batches, three times as fast; racks and brokers are bits of a number.

Begin with broker_bits.py, then durability.py and outage.py, which compute what the modules of the same name in frames/
compute. tests/pipeline/frames/bits compares the two. What bits cannot represent is left to Arrow batches.
"""
