"""The messages of members and clients as bytes.

`frames` cuts the stream, `fields` reads what is in a frame; the other files hold one kind of message each.
"""
