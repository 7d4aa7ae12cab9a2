"""Quarterdeck: the operator's console for clusters whose oldest member leads."""

__version__ = "0.1.0"
