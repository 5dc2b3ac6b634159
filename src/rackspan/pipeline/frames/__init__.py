"""The pipeline's Spark part, as chains of small frames; each names its grain.

Begin with inputs.py (what a run reads), then asked.py (what is asked of each partition) and durability.py: batches.py hands
Arrow batches to the functions of rackspan.audit, and Spark joins, groups and sorts. Beside them stand durability_bits.py and
outage_bits.py, which say the same in Spark's own columns where broker_bits.py can carry the racks.
`snapshot` in a frame is the number of a snapshot within its run, a smaller key than its cluster and moment.
"""
