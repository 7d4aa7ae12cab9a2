"""What the product says of membership, joining, split brain, partitions and connections, against the patterns.

`phrases.tsv` has the words of seven versions from 3.4 to 5.7, listed by `list_phrases` from their class files.
"""

from functools import cache
from itertools import product

import pytest

from quarterdeck.backend.hazelcast.logs.parsed_messages import NoEvent
from quarterdeck.backend.hazelcast.logs.patterns.matching import match_message
from tests.hazelcast.phrases.list_phrases import kept

PHRASES = kept()
FILLINGS = (
    "Member [10.0.0.1]:5701 - 31a1ee1a-d4cd-42be-8bca-27be5ff3b6c7", "[10.0.0.1]:5701", "31a1ee1a-d4cd-42be-8bca-27be5ff3b6c7",
    "17", "ACTIVE", "words",
)  # fmt: skip
MOST_FILLED = 3
"""Of more places all have the same filling."""


@cache
def meaning(logger: str, words: str) -> str:
    """Return whether a phrase is read, known, or unknown, with what the product may fill in, also before and behind it."""
    found = "unknown"
    for whole in dict.fromkeys(
        (words, f"*{words}", f"* {words}", f"{words}*", f"{words} *", f"*{words}*", f"* {words} *")
    ):
        parts = whole.split("*")
        places = len(parts) - 1
        fillings = product(FILLINGS, repeat=places) if places <= MOST_FILLED else ([one] * places for one in FILLINGS)
        for filling in fillings:
            text = parts[0] + "".join(filled + part for filled, part in zip(filling, parts[1:], strict=True))
            matched = match_message(text, logger)
            if matched is not None and not isinstance(matched.parsed, NoEvent):
                return "read"
            found = "known" if matched is not None else found
    return found


def test_no_warning_is_unknown() -> None:
    unknown = [
        f"{logger} {level} {words}"
        for logger, level, words, _ in PHRASES
        if level in ("WARNING", "SEVERE") and meaning(logger, words) == "unknown"
    ]
    assert not unknown, "\n".join(unknown)


@pytest.mark.parametrize("version", ["3.4", "3.12", "4.2.8", "5.0.5", "5.3.8", "5.5.0", "5.7.0"])
def test_every_version_says_what_is_read(version: str) -> None:
    read = {
        words
        for logger, level, words, versions in PHRASES
        if version in versions and level != "FINEST" and meaning(logger, words) == "read"
    }
    assert len(read) >= 20
