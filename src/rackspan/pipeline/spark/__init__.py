"""Spark itself: sessions of every kind (session.py), the Python of their executors (executors.py), and the jars of Delta Lake (jars.py).

Nothing is judged here: the tasks that it runs do that.
"""
