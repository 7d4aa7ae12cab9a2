"""Invariants of membership, partitions and data, checked record by record.

They are the theorems of Cluster Service Consistency Improvements and Avoid Data Loss on Migration. Each invariant remembers what
it needs; what it returns names the records that contradict each other. Lists are compared only within an incarnation (a uuid) or
within a lineage: after a split both halves rightly publish one version with different content. What cannot be seen at once, such
as that a list reaches every member on it, is checked when the run is concluded.

Records must come in an order in which no effect stands before its cause, as a simulated run and a cluster in one process
record them.
"""

from quarterdeck.backend.invariants.incarnations import RunIncarnations
from quarterdeck.backend.invariants.invariant import Invariant, Violation
from quarterdeck.backend.invariants.invariant_checker import CheckedRun, InvariantChecker

PROVEN_BY_WITNESSES = frozenset(
    ("numbering", "view integrity", "version", "unique content", "one master", "view order", "age order", "one author")
)
"""Invariants that their witnesses alone prove, whatever records are missing. The others need all records of a run."""

__all__ = ["PROVEN_BY_WITNESSES", "CheckedRun", "Invariant", "InvariantChecker", "RunIncarnations", "Violation"]
