"""Makes our events of what members of Hazelcast report to a client that is connected to them, and of what they also log.

Nothing here reads a socket or a clock: what was reported, and when, are arguments. What was not reported is never made up.
"""
