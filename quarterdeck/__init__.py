"""Quarterdeck: the operator's console for clusters whose oldest member leads.

As a library it reads and audits journals and logs, simulates scenarios and runs campaigns::

    import quarterdeck

    outcome = quarterdeck.simulate("split.yaml", seed=7)
    records = list(quarterdeck.read_journal("journals"))

Whatever `__all__` names is imported on first use, so that `import quarterdeck` alone costs nothing.
"""

# ruff: noqa: F403, F405 — a type checker sees what `library` re-exports

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quarterdeck.library import *

__version__ = "0.3.0"

__all__ = [
    "AuditResult",
    "BadScenario",
    "Finding",
    "Journal",
    "JournalProblem",
    "LogOptions",
    "LogRecords",
    "LogStory",
    "MemberOutcome",
    "NoJournal",
    "NoLogs",
    "NotJudged",
    "Observation",
    "Outcome",
    "PipelineMissing",
    "QuarantinedEntry",
    "QuarantinedLine",
    "Record",
    "Scenario",
    "SparkUnreachable",
    "StepOutcome",
    "TableOutcome",
    "Violation",
    "__version__",
    "audit",
    "campaign",
    "read_journal",
    "read_logs",
    "read_scenario",
    "simulate",
    "spark",
]


if not TYPE_CHECKING:  # a type checker would take any misspelt name for one that this function knows

    def __getattr__(name):
        """Import `library` when the first of its names is used."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from quarterdeck import library

        return getattr(library, name)

    def __dir__():
        """Return the public names."""
        return __all__
