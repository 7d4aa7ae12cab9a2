"""The audit of a journal that is still being written: findings within seconds of what they are about.

Spark finds the files, reads them and keeps account of what was read; the checkers of the simulator judge, run by run.
"""
