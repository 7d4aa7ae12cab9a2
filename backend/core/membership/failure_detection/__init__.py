"""How a member learns that another is dead: heartbeats, connection loss, link probes, suspicion and master confirmation.

Whatever the evidence is, it ends in `suspicion`.
"""
