"""Quarterdeck: the operator's console for clusters whose oldest member leads.

As a library it reads journals and logs and simulates scenarios::

    import quarterdeck

    outcome = quarterdeck.simulate("split.yaml", seed=7)
    records = list(quarterdeck.read_journal("journals"))

Whatever `__all__` names is imported on first use, so that `import quarterdeck` alone costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quarterdeck.library import (
        BadScenario,
        Journal,
        JournalProblem,
        LogOptions,
        LogRecords,
        LogStory,
        MemberOutcome,
        NoJournal,
        NoLogs,
        Observation,
        Outcome,
        QuarantinedEntry,
        Record,
        Scenario,
        StepOutcome,
        TableOutcome,
        Violation,
        read_journal,
        read_logs,
        read_scenario,
        simulate,
    )

__version__ = "0.1.0"

__all__ = [
    "BadScenario",
    "Journal",
    "JournalProblem",
    "LogOptions",
    "LogRecords",
    "LogStory",
    "MemberOutcome",
    "NoJournal",
    "NoLogs",
    "Observation",
    "Outcome",
    "QuarantinedEntry",
    "Record",
    "Scenario",
    "StepOutcome",
    "TableOutcome",
    "Violation",
    "__version__",
    "read_journal",
    "read_logs",
    "read_scenario",
    "simulate",
]


if not TYPE_CHECKING:  # a type checker would take any misspelt name for one that this function knows

    def __getattr__(name):
        """Import `library` when the first of its names is used."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from quarterdeck import library

        return getattr(library, name)

    def __dir__():
        """The public names."""
        return __all__
