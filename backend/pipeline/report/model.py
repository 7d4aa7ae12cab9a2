"""What a report says, whoever shows it: plain values, bounded in number, times in microseconds on the run's clock.

As JSON it is this very model; docs/spark/report.md says what each field is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from quarterdeck.backend.pipeline.audit_input import Kind
from quarterdeck.backend.pipeline.audit_result import NotJudged, QuarantinedLine

FORMAT = 1
"""Of the JSON; grows when a field goes away or changes its meaning."""

Verdict = Literal["violated", "doubtful", "uncontradicted", "sound"]
"""`doubtful`: warnings only, so something is missing in the journal; `uncontradicted`: nothing in members' logs breaks a rule,
and most rules cannot be judged from logs."""


@dataclass(frozen=True)
class Cut:
    """How much of something is shown, and how much there is."""

    shown: int
    total: int

    @property
    def left_out(self) -> int:
        """How many are not shown."""
        return self.total - self.shown


@dataclass(frozen=True)
class Event:
    """One event that proves a finding."""

    member: str
    uuid: str
    seq: int
    at_us: int
    version: int | None


@dataclass(frozen=True)
class Problem:
    """A place where a rule is broken."""

    rule: str
    severity: str
    member: str
    uuid: str
    seq: int
    at_us: int
    detail: str
    doubt: str
    members: tuple[str, ...]
    versions: tuple[int, ...]
    witnesses: tuple[Event, ...]
    witnesses_cut: Cut
    command: str
    """Shows the moment in the console; empty where nothing can."""


@dataclass(frozen=True)
class RuleCount:
    """How often a rule was broken."""

    rule: str
    violations: int
    warnings: int


@dataclass(frozen=True)
class Life:
    """One incarnation of a member."""

    uuid: str
    address: str
    start_us: int
    end_us: int | None
    """None: it went on to the end of the journal."""
    end: str
    """stopped, merged, killed, join-failed, or empty."""


@dataclass(frozen=True)
class View:
    """A list, for as long as a member had it."""

    uuid: str
    start_us: int
    end_us: int
    version: int
    lineage: str
    """The letter of the lineage in this run."""
    master: str
    members: tuple[str, ...]
    size: int
    """How many members are on it; `members` may be shorter."""
    installs: int
    """More than 1: the last of so many lists in a time too short to be shown."""


@dataclass(frozen=True)
class Lane:
    """One member's time."""

    member: str
    lives: tuple[Life, ...]
    lives_cut: Cut
    views: tuple[View, ...]
    installs: int
    """Lists that it installed in all."""

    @property
    def shortened(self) -> bool:
        """Whether lists are left out of the lane."""
        return any(view.installs > 1 for view in self.views)


@dataclass(frozen=True)
class Lineage:
    """The lists of one mastership, under a letter that stands for it."""

    letter: str
    name: str
    master: str
    first_version: int
    last_version: int
    start_us: int


@dataclass(frozen=True)
class Side:
    """A cluster on one side of a split: who leads it, and who had its list at some time of the split."""

    lineage: str
    master: str
    members: tuple[str, ...]


@dataclass(frozen=True)
class Split:
    """A time during which more than one master led members of its own."""

    number: int
    start_us: int
    end_us: int | None
    """None: it lasted to the end of the journal."""
    lasted_us: int
    """To the end of the journal where it lasted."""
    healed_us: int | None
    """When the last link was mended or frozen member resumed before it ended; None where none was."""
    sides: tuple[Side, ...]


@dataclass(frozen=True)
class Fault:
    """What was done to the cluster from outside."""

    fault: str
    start_us: int
    end_us: int | None
    what: str
    """In words."""
    member: str
    """Whose process it was; empty for a link."""


@dataclass(frozen=True)
class Suspicion:
    """How often, and how long in all, `observer` suspected `suspect`.

    `open`: of these, neither cleared nor ended by taking the suspect off the list.
    """

    observer: str
    suspect: str
    times: int
    suspected_us: int
    open: int


@dataclass(frozen=True)
class Migration:
    """One migration of a replica."""

    migration_id: str
    partition: int | None
    type: str
    source: str
    destination: str
    start_us: int
    copied_us: int | None
    end_us: int | None
    outcome: str
    bytes: int | None
    rejections: int
    reason: str


@dataclass(frozen=True)
class Outcome:
    """How many migrations of a type ended in one way."""

    type: str
    outcome: str
    times: int


@dataclass(frozen=True)
class Claim:
    """A claim of the mastership."""

    member: str
    start_us: int
    end_us: int | None
    outcome: str
    version: int | None
    new_version: int | None
    accepted: int
    refused: int
    retried: int
    left_out: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Merge:
    """A member that left its cluster to join another."""

    member: str
    target: str
    from_lineage: str
    to_lineage: str
    start_us: int
    end_us: int | None


@dataclass(frozen=True)
class Bin:
    """`times` took from `from_us` up to `to_us`, the latter excluded."""

    from_us: int
    to_us: int
    times: int


@dataclass(frozen=True)
class Metric:
    """What was measured of one thing, in its `unit`. `bins` stand only where that is us, microseconds."""

    metric: str
    kind: str
    unit: str
    count: int
    missing: int
    """How often it should have happened and did not."""
    floor: float | None
    """The least that theory allows for; None where it says nothing."""
    least: float | None
    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    most: float | None
    bins: tuple[Bin, ...]


@dataclass(frozen=True)
class Observed:
    """What is to be known of members' logs although no rule is broken."""

    kind: str
    start_us: int
    end_us: int
    is_open: bool
    members: tuple[str, ...]
    headline: str
    detail: str
    cause: str
    remedy: str
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class SizeStep:
    """How many members a master's list had from a moment on."""

    at_us: int
    lineage: str
    version: int
    size: int


@dataclass(frozen=True)
class MergeVerdict:
    """What a member said in its log about merging with the cluster of a remote master."""

    member: str
    remote: str
    decision: str
    rule: str
    times: int
    first_us: int
    last_us: int
    why: str
    place: str


@dataclass(frozen=True)
class Round:
    """Migrations that a master planned at one time, as its log says."""

    master: str
    start_us: int
    end_us: int | None
    planned: int
    completed: int | None
    place: str


@dataclass(frozen=True)
class KindCount:
    """How often a kind of event happened."""

    kind: str
    times: int


@dataclass(frozen=True)
class Run:
    """One run. What was cut down has a `…_cut` beside it."""

    number: int
    run: str
    verdict: Verdict
    start_us: int
    end_us: int
    events: int
    command: str
    """Opens the run in the console; empty where nothing can."""
    incomplete: str
    """What its journal lacks; empty where nothing is known to be missing."""
    rules: tuple[RuleCount, ...]
    problems: tuple[Problem, ...]
    problems_cut: Cut
    lanes: tuple[Lane, ...]
    lanes_cut: Cut
    lineages: tuple[Lineage, ...]
    splits: tuple[Split, ...]
    splits_cut: Cut
    faults: tuple[Fault, ...]
    faults_cut: Cut
    suspicions: tuple[Suspicion, ...]
    suspicions_cut: Cut
    migrations: tuple[Migration, ...]
    migrations_cut: Cut
    outcomes: tuple[Outcome, ...]
    claims: tuple[Claim, ...]
    claims_cut: Cut
    merges: tuple[Merge, ...]
    merges_cut: Cut
    metrics: tuple[Metric, ...]
    metrics_cut: Cut
    observations: tuple[Observed, ...]
    observations_cut: Cut
    sizes: tuple[SizeStep, ...]
    sizes_cut: Cut
    verdicts: tuple[MergeVerdict, ...]
    verdicts_cut: Cut
    rounds: tuple[Round, ...]
    rounds_cut: Cut
    kinds: tuple[KindCount, ...]


@dataclass(frozen=True)
class IndexLine:
    """A run in the index. `section`: the number of its section, None where it has none."""

    run: str
    verdict: Verdict
    section: int | None
    members: int
    events: int
    span_us: int
    violations: int
    warnings: int
    observations: int = 0


@dataclass(frozen=True)
class Report:
    """The whole of it."""

    verdict: Verdict
    source: Kind
    headline: str
    """The observations in a few words."""
    observations: int
    sources: tuple[str, ...]
    """The journals, as they were named."""
    counts: dict[str, int]
    """What the audit counted: files, lines, records, runs and so on."""
    violations: int
    warnings: int
    rules: tuple[RuleCount, ...]
    judged: tuple[str, ...]
    """The rules that were applied."""
    not_judged: tuple[NotJudged, ...]
    index: tuple[IndexLine, ...]
    index_cut: Cut
    runs: tuple[Run, ...]
    bad_lines: tuple[QuarantinedLine, ...]
    bad_lines_cut: Cut
    format: int = field(default=FORMAT)
