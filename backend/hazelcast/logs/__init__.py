"""Reads the log files of real Hazelcast members and reconstructs the events that our own journals hold.

`reader` turns files into records; `split_parser` reads one byte range of a file, and `interpretation`
turns the parsed messages of members into their records.
"""
