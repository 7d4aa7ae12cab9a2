"""The links between the members and the faults in force.

The editor plans partitions of the network and cuts of links.
"""
