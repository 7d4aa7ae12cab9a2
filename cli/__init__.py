"""The command line: one thin module per command group."""

__version__ = "0.1.0"
