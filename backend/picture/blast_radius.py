"""What ending members would hit, in words: told before a destructive command is confirmed (design section 8)."""

from __future__ import annotations

from collections.abc import Collection

from backend.picture.one_line import one_line
from backend.picture.picture import Picture


def blast_radius(picture: Picture, targets: Collection[str]) -> str:
    """One or two sentences on who follows, lists and outlives `targets`."""
    running = [label for label, belief in picture.members.items() if belief.running]
    hit = [label for label in running if label in targets]
    left = [label for label in running if label not in targets]
    sentences = [f"{len(hit)} of {len(running)} running members would end; {len(left)} would be left."]
    for label in hit:
        address = picture.members[label].address
        followers = [other for other in left if picture.members[other].master == address]
        if followers:
            sentences.append(
                f"{one_line(label)} is master of {', '.join(map(one_line, followers))}: they need a new one."
            )
    if not left and running:
        sentences.append("Nothing of the cluster remains.")
    return " ".join(sentences)
