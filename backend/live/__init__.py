"""The asyncio driver: members that speak real TCP on real clocks.

Rooms: the transport, its security, one running member, a cluster of them, and members in processes of their own.
"""
