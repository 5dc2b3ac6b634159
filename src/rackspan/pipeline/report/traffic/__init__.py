"""The part of a report that needs readings: what to do first, the bytes from rack to rack, and the bill.

Begin with data.py (the content), then sums.py (the tables of hours summed up with Arrow).
No rule is defined here: every figure is a plain sum of rows.
"""
