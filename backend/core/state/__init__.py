"""The whole state of a member, plain data that can be kept, compared and gone on with.

Beside it the context in which the member lives, which is no state and is given again to whoever goes on from a snapshot.
"""
