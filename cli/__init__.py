"""The command line of Quarterdeck.

`main` holds the entry point, `commands` has one thin module for each command, and `configuration` reads what the user
has configured.
"""
