"""The texts that Hazelcast members log, each as a pattern with the parsed message that it means.

`matching` finds the pattern that a message fits; the other files list the patterns by subject.
"""
