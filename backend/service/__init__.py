"""One member as a process with everything that belongs to it.

The rooms inside hold how it is configured, how it runs, and what it serves over HTTP.
"""
