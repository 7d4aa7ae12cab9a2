"""Turns the bytes of log files into whole messages with a time, a member and a logger.

It removes the envelope of container engines and syslog, recognises the layout of each line, and joins the lines that
belong to one message.
"""
