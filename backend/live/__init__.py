"""The asyncio driver: members that speak real TCP on real clocks, alone or as a cluster on this machine."""
