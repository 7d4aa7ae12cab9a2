"""What a command or a network fault would do, before it is given.

That is: which clusters result, which data is lost, what a master would decide, and how strongly the operator has to confirm it.
"""
