"""Documents drawn for people: tables first, the summary last. One module for each group of commands.

Each function takes the document that `-o json` prints, or the values it is made of. Nothing here reads a cluster.
"""
