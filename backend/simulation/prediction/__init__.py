"""What comes of commands that are not given yet: the members are run forward, in a simulated copy of their cluster.

Where only a picture of the cluster is known, one with the same lists is founded anew and stands for it.
"""
