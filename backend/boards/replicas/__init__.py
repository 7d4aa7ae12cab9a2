"""The replica map shows which member holds which replica of which partition, in the table of one observer.

The census counts what is wrong in it, and the text says it in words.
"""
