"""Reads the log files of real Hazelcast members and reconstructs the events that our own journals hold.

`reader` takes files and returns records; `split_parser` reads one byte range of a file, and `event_reconstruction`
turns the parsed messages of one member into its records.
"""
