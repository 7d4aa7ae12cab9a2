"""The messages of members and clients as bytes, both ways.

`frames` cuts the stream, `fields` reads what is in a frame; then comes a file for each kind of message.
"""
