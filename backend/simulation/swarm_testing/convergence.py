"""What one cluster means for the members of a swarm run. How long they may take: `invariants.convergence_bounds`."""

from __future__ import annotations

from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.scenarios.expectations import list_labels, running, suspect_labels


def why_not_converged(picture: Picture) -> str:
    """Why the running members are not one healthy cluster, in words; empty when they are.

    They are when all hold one list of exactly themselves, nobody is suspected, and all hold the cluster to be ACTIVE.
    """
    alive = running(picture)
    if not alive:
        return "no member is running"
    first_label, first = next(iter(alive.items()))
    for label, belief in alive.items():
        if belief.status != "member":
            return f"{label} belongs to no cluster"
        if (belief.lineage, belief.version) != (first.lineage, first.version) or belief.master != first.master:
            return (
                f"{_standing(picture, first_label)}, but {_standing(picture, label)}; "
                f"{_count_of_lists(picture)} different lists among {len(alive)} members"
            )
    for label, belief in alive.items():
        if set(list_labels(picture, belief)) != set(alive):
            return f"{_standing(picture, label)}, but {', '.join(alive)} are running"
    for label, belief in alive.items():
        if belief.suspicions:
            return f"{label} suspects {', '.join(suspect_labels(picture, belief))}"
        if belief.cluster_state != "ACTIVE":
            return f"{label} holds the cluster to be {belief.cluster_state}"
    return ""


def _count_of_lists(picture: Picture) -> int:
    return len({(belief.lineage, belief.version) for belief in running(picture).values()})


def _standing(picture: Picture, label: str) -> str:
    belief = picture.members[label]
    master = picture.label_of(belief.master) if belief.master else "nobody"
    return f"{label} follows {master} with v{belief.version} {', '.join(list_labels(picture, belief))}"
