"""rackspan's own placement: racks as even as possible, then leaders and replicas as level as possible, load included.

Begin with placer.py (the goals in order). settings.py reads its configs, broker_quotas.py computes how many leaders and
replicas each broker gets, one_per_rack.py and several_per_rack.py distribute them over partitions. It never moves a
replica that exists already.
"""
