"""The virtual-time driver of the protocol core: whole clusters run in one process, from a seed, byte for byte
repeatable. Around it stand the scenario format and its interpreter, the invariants, and swarm testing.
"""
