"""Mutation testing: small faults planted in rackspan's code, and which of them the tests of a package report.

    python -m tools.mutation flow consumers --sample 200

Read packages.py (which tests judge which package), mutants.py and meanings.py (what a fault is), coverage_map.py (which
tests execute it), then runs.py (how one is tried). The operators are mutmut's, the faults of meaning our own. Its runner is not used: it leaves out constants, tables, decorated functions and enumerations,
which hold half of the rules here, and it rewrites every class that it mutates. Cosmic Ray's runner starts one
interpreter for every mutant and edits the work tree.
Never part of the wheel; it writes only below .mutation/.
"""
