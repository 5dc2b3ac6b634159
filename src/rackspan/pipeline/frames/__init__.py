"""The pipeline's Spark part, as chains of small frames; each names its grain.

Begin with inputs.py (what a run reads), then asked.py (what is asked of each partition) and durability.py. No rule is
written here: batches.py hands Arrow batches to the functions of rackspan.audit, and Spark joins, groups and sorts.
`snapshot` in a frame is the number of a snapshot within its run, a smaller key than its cluster and moment.
"""
