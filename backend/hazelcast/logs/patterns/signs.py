"""Pieces of text without which no message makes an event: whoever wants events only need not look at lines that have none.

Each is so short that it stands in several messages, and so rare that other lines hardly have it.
"""

SIGNS: tuple[bytes, ...] = (
    b"uspect", b"uspicion", b"because it has ", b"not ping ",
    b"astership",
    b"Members {size", b"Members [",
    b" is START", b" is SHUT", b" is MERG", b" starting at ", b"Resetting ", b" shutdown", b"Terminating forcefully",
    b"ould not join", b"oin request to ", b"oinRequest ",
    b"Removing ", b"Not updating members",
    b"erge to ", b"merging ", b"is not a master", b"start merge", b"cluster state",
    b"completely lost", b"Repartitioning", b"All migration tasks",
)  # fmt: skip
