"""Amounts in words: lengths of time, sizes of data, counts; and the selection of a filter among texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from string import ascii_lowercase, ascii_uppercase

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import one_line as one_line
from quarterdeck.backend.core.properties import SECOND_US

LONG_US = 120 * SECOND_US
"""From so long on, whole minutes and hours read better."""


def duration_text(length_us: int) -> str:
    """Return a length of time to three figures, in the largest unit that keeps it readable."""
    if length_us >= SECOND_US - 500:
        return f"{_three_figures(length_us / SECOND_US)} s"
    return f"{_three_figures(length_us / 1_000)} ms"


def _three_figures(amount: float) -> str:
    return f"{amount:.3g}" if amount < 999.5 else f"{amount:.0f}"


def span_text(length_us: int) -> str:
    """Return a length of time that may be of milliseconds or of days."""
    return duration_text(length_us) if length_us < LONG_US else age_text(length_us)


def clock_text(at_us: int) -> str:
    """Return a moment on the run's clock as seconds with milliseconds, right-aligned up to 99999 s."""
    return f"{at_us / SECOND_US:9.3f}"


def age_text(length_us: int) -> str:
    """Return how long something has lasted, in whole seconds, minutes or hours: the longest unit of which it has two or more."""
    seconds = max(length_us, 0) // SECOND_US
    for size, unit in ((3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def bytes_text(size: int) -> str:
    """Return a size of data, in units of a thousand."""
    for unit_bytes, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit_bytes:
            return f"{size / unit_bytes:.3g} {unit}"
    return f"{size} B"


def counted(number: int, what: str, several: str = "") -> str:
    """So many of `what`; `several` is its plural where that is not made with an s."""
    return f"{number} {what if number == 1 else several or what + 's'}"


def listed(parts: Sequence[str], most: int, joint: str = ", ") -> str:
    """Return the first `most` of `parts` in a row, and the number of the rest."""
    if len(parts) <= most:
        return joint.join(parts)
    return f"{joint.join(parts[:most])}{joint.strip(', ')} and {len(parts) - most} more"


LETTERS = ascii_uppercase + ascii_lowercase


def letter_of(place: int) -> str:
    """Return the letter of the member that appeared at this place among all members: A to Z, a to z, then AA, AB and so on."""
    letter = LETTERS[place % len(LETTERS)]
    return letter if place < len(LETTERS) else letter_of(place // len(LETTERS) - 1) + letter


NameOf = Callable[[Address], str]
"""Gives the name that people know an address by; `Picture.label_of` does."""

NAMES_SPELT_OUT = 16
"""How many members a line names before it only counts the rest; the event itself has them all."""

ADDRESS_FORM = re.compile(r"[^\s,;()'\"]+:\d+")


def with_names(text: str, name_of: NameOf) -> str:
    """`text` with the addresses in it replaced by names. Members speak to one another, and in reasons, by address."""
    return ADDRESS_FORM.sub(lambda found: name_of(Address(found[0])), text)


def names_text(addresses: Iterable[Address], name_of: NameOf) -> str:
    """Return the names of `addresses`, or of as many as fit a line."""
    return listed([name_of(address) for address in addresses], NAMES_SPELT_OUT) or "no member"


def follows_text(member: str, master: str) -> str:
    """Return whom a member follows: no member, itself as the master, or another one."""
    if member == master:
        return f"{member} is master"
    return f"{member} follows {master or 'no master'}"


PORT = re.compile(r":\d+$")


def distinguishable(names: Sequence[str], width: int) -> Sequence[str]:
    """`names` in at most `width` letters each, so that no two of them read the same; more letters only where it takes more.

    Of addresses the port is left out where it is the same for all; what does not fit is cut at its end, or else at its beginning.
    """
    if all(len(name) <= width for name in names):
        return names
    ports = {found[0] if (found := PORT.search(name)) else "" for name in names}
    if len(ports) == 1:
        names = [PORT.sub("", name) for name in names]
    distinct_names = set(names)
    for ends, cut in ((str.startswith, slice(0, width - 1)), (str.endswith, slice(1 - width, None))):
        parts = [name[cut] if len(name) > width else name for name in names]
        if all(
            part == name or sum(ends(other, part) for other in distinct_names) == 1
            for part, name in zip(parts, names, strict=True)
        ):
            return [_cut(name, part, front=cut.start != 0) for part, name in zip(parts, names, strict=True)]
    return distinguishable(names, width + 1)


def _cut(name: str, part: str, *, front: bool) -> str:
    return name if part == name else f"…{part}" if front else f"{part}…"


LEVELS = "▁▂▃▄▅▆▇█"
"""The first stands for nothing at all."""


def bars(numbers: Sequence[float], highest: float) -> str:
    """Return a bar for each number; one of `highest` is full, and none that is above 0 looks like 0."""
    steps = len(LEVELS) - 1
    if highest <= 0:
        return LEVELS[0] * len(numbers)
    return "".join(
        LEVELS[0] if number <= 0 else LEVELS[max(1, min(steps, round(number / highest * steps)))] for number in numbers
    )


class Refusal(ValueError):
    """A request that cannot be done. The message says why, and the right form of it."""


def text_filter(text: str) -> Callable[[str], bool]:
    """Return the test for ``words``, ``!words`` or ``/expression/``, also ``!/expression/``. Case does not matter.

    An expression that is not closed yet, or that cannot be read, is looked for as it stands: the user is still typing.
    """
    negated = text.startswith("!") and len(text) > 1
    wanted = text[1:] if negated else text
    folded = wanted.casefold()
    is_closed = len(wanted) >= 3 and wanted.startswith("/") and wanted.endswith("/")
    expression = readable_expression(wanted[1:-1]) if is_closed else None
    if expression is not None:
        return lambda text: (expression.search(text) is None) is negated
    return lambda text: (folded in text.casefold()) is not negated


def readable_expression(text: str) -> re.Pattern[str] | None:
    """Return the regular expression in `text`, for letters of either case; None when it cannot be read."""
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error:
        return None
