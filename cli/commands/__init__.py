"""The commands of `quarterdeck`, one thin module each; a command of several files has a room of its own.

Heavy imports are inside the functions, so that completion and `version` are instant.
"""
