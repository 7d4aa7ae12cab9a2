"""Names that people know, in place of addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from quarterdeck.backend.core.address import Address

NameOf = Callable[[Address], str]
"""Gives the name that people know an address by; `Picture.label_of` does."""

NAMES_SPELT_OUT = 16
"""How many members a line names before it only counts the rest; the event itself has them all."""

ADDRESS_FORM = re.compile(r"[^\s,;()'\"]+:\d+")


def with_names(text: str, name_of: NameOf) -> str:
    """`text` with the addresses in it replaced by names. Members speak to one another, and in reasons, by address."""
    return ADDRESS_FORM.sub(lambda found: name_of(Address(found[0])), text)


def names_text(addresses: Iterable[Address], name_of: NameOf) -> str:
    """The names of `addresses`, or of so many of them as one line bears."""
    named = list(addresses)
    spelt = ", ".join(name_of(address) for address in named[:NAMES_SPELT_OUT])
    if len(named) > NAMES_SPELT_OUT:
        return f"{spelt} and {len(named) - NAMES_SPELT_OUT} more"
    return spelt or "nobody"
