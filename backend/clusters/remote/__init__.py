"""A cluster whose members run elsewhere, reached over their HTTP interfaces: discovery, streams of records and their
merge, and commands sent as requests to members. Access data and the shapes of responses are kept here too.
"""
