"""Whole numbers of what is recorded: a journal has none that a column of a table could not hold."""

from typing import Annotated

from msgspec import Meta

Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""A number of 64 bits. A line with a larger one in such a field is no record."""

MOST_MILLISECONDS = 1 << 53
"""More than a member can mean; in microseconds it still has 64 bits."""
