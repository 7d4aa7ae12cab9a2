"""What an operator asks for and cannot have."""

from __future__ import annotations


class Refusal(ValueError):
    """Something that was asked for and cannot be done. The message says why, and what to write instead."""
