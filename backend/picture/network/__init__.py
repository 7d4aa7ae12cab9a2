"""The network is shown as the members stand in it: the condition of each link, and the faults in force that made it so.

Faults are reconstructed from single links, with the commands that undo them.
"""
