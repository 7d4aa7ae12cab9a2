"""Names that people know, in place of addresses."""

from __future__ import annotations

import re
from collections.abc import Callable

from backend.core.address import Address

NameOf = Callable[[Address], str]
"""Gives the name that people know an address by; `Picture.label_of` does."""

ADDRESS_FORM = re.compile(r"[^\s,;()'\"]+:\d+")


def with_names(text: str, name_of: NameOf) -> str:
    """`text` with the addresses in it replaced by names. Members speak to one another, and in reasons, by address."""
    return ADDRESS_FORM.sub(lambda found: name_of(Address(found[0])), text)
