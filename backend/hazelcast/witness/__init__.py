"""Makes events of ours of what members of Hazelcast tell somebody who is connected to them, and of what they log besides.

Nothing here is read from a socket or a clock: what was heard, and when, are arguments. What nobody told is never made up.
"""
