"""Apache Kafka's own placements, draw for draw: AdminUtils of KIP-36 and KRaft's StripedReplicaPlacer.

Begin with rack_alternated.py and striped.py (the placers). rack_stripes.py is Kafka's loop, stripe_arrays.py the same for
a million partitions at once, and java_random.py the random numbers of Java. Given Kafka's seed, each returns Kafka's
assignment; none considers how loaded a broker is.
"""
