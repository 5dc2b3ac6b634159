"""Planted mistakes: bugs that the product does not have and that the judges must catch.

planted.py lists each with its world, the mean number of seeds until it is caught, and the rules it breaks. The other
modules hold the mistakes, each one method of a rule or a coordinator overridden.
"""
