"""Everything an operator may do: the commands, what is to be known of each, and whether one can be done now.

Keys, the prompt, command lines, scenarios and HTTP all come to this room.
"""
