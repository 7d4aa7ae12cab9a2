"""Runs that can only be looked at: read from a journal, from the logs of members, or from a journal that was made of logs.

Which line of which log made a record is known here, and kept beside an imported journal.
"""
