"""A cluster whose members run elsewhere, reached over their HTTP interfaces.

Here are discovery, streams of records and their merge, commands as requests to members, and credentials.
"""
