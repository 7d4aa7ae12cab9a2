"""A script of faults as it is kept: what was done, what members logged, what consoles recorded. It is judged from its folder.

`python -m tests.hazelcast.real.kept_run FOLDER…` judges kept runs again, without a member; with `--cut TARGET` it cuts them.
"""

from __future__ import annotations

import gzip
import re
from argparse import ArgumentParser
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec import Struct

from quarterdeck.backend.clusters.cluster import ConnectionStatus, watcher_of
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.witnessed.events import ConnectionChanged
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.observations.observation import Observation
from quarterdeck.backend.judgement.observations.reader import read_logs
from quarterdeck.backend.judgement.observations.story import RecordObservers
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.replay.tape import Tape
from quarterdeck.backend.picture.replay.timeline import Landmarks
from tests.hazelcast.real.judges import LATE_US, Statement, Verdict, beginnings, held_now, judge, statements, table
from tests.hazelcast.real.loss_judges import judge_loss, loss_statements
from tests.hazelcast.real.member_logs import ENTRY, ClockStep, lists_of, words_of
from tests.hazelcast.real.observation_judges import judge_observation
from tests.hazelcast.real.text_judges import RULES, judge_text
from tests.hazelcast.real.told_texts import texts
from tests.hazelcast.real.truth import DoneStep, EntryCount, EntryLoss, Truth
from tests.hazelcast.real.window import SECOND_US

RECENT = 2000
FACTS = "run.json"
LOGS_ALONE = "logs-alone"
NUMBERS = re.compile(r"(?<![\d.])\d+(?:\.\d)?(?= |,|$)|\b[0-9a-f]{8}\b")
COMPARED = re.compile(
    r"Members \{|suspected to be dead|Suspecting Member|explicit suspicion|Removed suspicion|is MERG|should merge to|merging|"
    r"[mM]astership|Migration tasks count|migration tasks have been completed|Initializing cluster partition|cluster state|"
    r"SHUT|[sS]hutdown|refused to address|is START| starting at |clock jump"
)
"""The entries of logs with which anything is compared."""


class Look(Struct, frozen=True):
    """A moment at which a console is read: after so many records, with these connections."""

    at_us: int
    """On the clock of the members' logs."""
    now_us: int
    """On the console's."""
    records: int
    connections: dict[str, ConnectionStatus]


class RunFacts(Struct, frozen=True):
    """What was done, and what came of it."""

    script: str
    version: str
    done: list[DoneStep]
    loss: EntryLoss | None
    one_sided: bool
    failed: str = ""
    """Why the script did not come to its end; what was said until then is judged all the same."""
    ends_late_us: int = 1_500_000
    """How much later than it was an end may be noted."""
    counts: list[EntryCount] = []
    """What a client of the product counted."""
    maps: dict[str, int] = {}
    """How many entries each map was given."""


class KeptConsole(Struct, frozen=True):
    """What one console recorded, and when it was read."""

    name: str
    records: list[Record]
    looks: list[Look]

    def write(self, folder: Path) -> None:
        """Keep it in a folder."""
        write_lines(folder / f"{self.name}.records.jsonl.gz", self.records)
        write_lines(folder / f"{self.name}.looks.jsonl.gz", self.looks)

    @classmethod
    def read(cls, folder: Path, name: str) -> KeptConsole:
        """Read what is kept of it."""
        records = [msgspec.json.decode(it, type=Record) for it in lines(folder / f"{name}.records.jsonl.gz")]
        return cls(
            name, records, [msgspec.json.decode(it, type=Look) for it in lines(folder / f"{name}.looks.jsonl.gz")]
        )

    def said(self) -> Iterator[Statement]:
        """Yield all that the program says of these records, by the code as it is now."""
        picture, observers = Picture(), RecordObservers("try", "live")
        read = 0
        missed: dict[str, int] = {}
        """When each member was seen last not to be reached."""
        unreached: set[str] = set()
        """All that this console has ever not reached."""
        for look in self.looks:
            for record in self.records[read : look.records]:
                picture.apply(record)
                observers.add(record)
                if isinstance(record.event, ConnectionChanged) and not held_now(record.event.state):
                    unreached.add(record.member)
            read = look.records
            recent = self.records[max(0, read - RECENT) : read]
            moment = look.connections, recent, look.now_us, look.at_us
            missed |= {it: look.at_us for it, held in look.connections.items() if held.contact != "connected"}
            # What is recorded of a connection comes after it: it is merged in order of time with what logs say.
            late = {it for it, at_us in missed.items() if look.at_us - at_us < LATE_US}
            for said in (*statements(picture, *moment), *texts(picture, *moment)):
                yield said._replace(unreached=said.unreached | late)
            judge_now = Judge(picture, watcher_of(look.connections), look.now_us)
            yield from loss_statements(judge_now, look.at_us)
            story = observers.story(look.now_us, judge_now.losses)
            unreached |= {it for it, held in look.connections.items() if not held_now(held.state)}
            for observation in story.observations if story else ():
                about = tuple(map(Address, observation.members))
                yield Statement(
                    look.at_us, "observation", about, observation, observation.headline, unreached=frozenset(unreached)
                )
        yield from beginnings(self.records, lambda record: record.utc)
        yield from self._marks()

    def _marks(self) -> Iterator[Statement]:
        """Yield the marks on the strip of time as they stand at the end."""
        tape, landmarks = Tape(), Landmarks()
        tape.append(self.records)
        landmarks.follow(tape)
        ahead_us = self.looks[-1].at_us - self.looks[-1].now_us
        for mark in landmarks.marks:
            yield Statement(mark.at_us + ahead_us, "mark", (), f"{mark.letter} {mark.text}")


def keep(folder: Path, facts: RunFacts, logs: Mapping[Address, Path], consoles: Sequence[KeptConsole]) -> None:
    """Keep a run in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FACTS).write_bytes(msgspec.json.format(msgspec.json.encode(facts)))
    for address, log in logs.items():
        (folder / f"{address.replace(':', '-')}.log.gz").write_bytes(gzip.compress(log.read_bytes(), mtime=0))
    for console in consoles:
        console.write(folder)


def run_facts(folder: Path) -> RunFacts:
    """Read what was done in a kept run."""
    return msgspec.json.decode((folder / FACTS).read_bytes(), type=RunFacts)


def cut(folder: Path, target: Path, every: int = 3) -> None:
    """Keep what is needed of a run to judge it in a second: some of the looks, and of the logs what is compared."""
    target.mkdir(parents=True, exist_ok=True)
    (target / FACTS).write_bytes((folder / FACTS).read_bytes())
    for log in folder.glob("*.log.gz"):
        entries = ENTRY.split(gzip.decompress(log.read_bytes()).decode())
        kept = "".join(entry for entry in entries if COMPARED.search(entry))
        (target / log.name).write_bytes(gzip.compress(kept.encode(), mtime=0))
    for place in folder.glob("*.looks.jsonl.gz"):
        console = KeptConsole.read(folder, place.name.removesuffix(".looks.jsonl.gz"))
        KeptConsole(console.name, console.records, console.looks[::every]).write(target)


def logs_of(folder: Path) -> dict[Address, str]:
    """Read what each member of a kept run logged."""
    return {
        Address(log.name.removesuffix(".log.gz").replace("-", ":")): gzip.decompress(log.read_bytes()).decode()
        for log in sorted(folder.glob("*.log.gz"))
    }


def truth_of(folder: Path) -> Truth:
    """Return what was true in a kept run."""
    facts, logs = run_facts(folder), logs_of(folder)
    clocks = [it for it in facts.done if it.kind == "clock"]
    steps = {
        address: [ClockStep(it.at_us, int(it.value) * SECOND_US) for it in clocks if address in it.members]
        for address in logs
    }
    logged = {address: list(lists_of(log, steps[address])) for address, log in logs.items()}
    words = {address: words_of(log, steps[address]) for address, log in logs.items()}
    truth = Truth(logged, facts.done, facts.loss, words, facts.ends_late_us, facts.counts, facts.maps)
    lite = {address for address, log in logs.items() if re.search(r" this lite$", log, re.MULTILINE)}
    return replace(truth, counts=list(counts_of_none(truth, lite)))


def counts_of_none(truth: Truth, lite: Collection[Address]) -> Iterator[EntryCount]:
    """Yield the counts; those without an answer while no data member runs found nothing."""
    for count in truth.counts:
        is_empty = all(truth.at(it).running <= {*lite} for it in (count.from_us, count.until_us))
        yield count._replace(entries=dict.fromkeys(count.entries, 0)) if is_empty else count


def judge_run(folder: Path) -> Iterator[tuple[str, list[tuple[Statement, Verdict]]]]:
    """Yield each console's name and its statements, each with its verdict."""
    facts = run_facts(folder)
    logs = logs_of(folder)
    truth = truth_of(folder)
    yield LOGS_ALONE, [(it, verdict_of(it, truth, one_sided=facts.one_sided)) for it in of_logs(logs, truth)]
    for place in sorted(folder.glob("*.looks.jsonl.gz"), reverse=True):
        name = place.name.removesuffix(".looks.jsonl.gz")
        said = KeptConsole.read(folder, name).said()
        yield name, [(it, verdict_of(it, truth, one_sided=facts.one_sided)) for it in said]


def of_logs(logs: Mapping[Address, str], truth: Truth) -> Iterator[Statement]:
    """Yield what an audit observes in the members' logs alone, when all is over."""
    with TemporaryDirectory() as folder:
        for address, log in logs.items():
            (Path(folder) / f"{address.replace(':', '-')}.log").write_text(log)
        stories = read_logs([Path(folder)], LogOptions(run="try")).stories
    end_us = max(words[-1].at_us for words in truth.words.values())
    for observation in (found for story in stories for found in story.observations):
        yield Statement(
            end_us, "observation", tuple(map(Address, observation.members)), observation, observation.headline
        )


def verdict_of(said: Statement, truth: Truth, *, one_sided: bool) -> Verdict:
    """Return whether a statement of any kind was true."""
    if said.kind in ("loss", "no loss"):
        return judge_loss(said, truth)
    if said.kind == "observation":
        return judge_observation(said, truth, one_sided=one_sided)
    return (judge_text if said.kind in RULES else judge)(said, truth, one_sided=one_sided)


def report(folder: Path) -> list[str]:
    """Print the tables of a run, and return a line for each false statement."""
    facts = run_facts(folder)
    wrong: list[str] = []
    for name, judged in judge_run(folder):
        print(f"\n{facts.script}, {facts.version}, {name}", *table(judged), sep="\n")
        assert judged or name == LOGS_ALONE
        wrong += described(name, [said for said, verdict in judged if verdict in ("false", "no rule")], facts.done)
    return wrong


def described(name: str, wrong: Sequence[Statement], done: Sequence[DoneStep]) -> Iterator[str]:
    """Yield a line for each false statement: when it was first made, how often, and how long after which step."""
    alike: dict[tuple[str, str], list[Statement]] = {}
    for said in wrong:
        value = said.value.kind if isinstance(said.value, Observation) else said.value
        text = f"{said.kind} {' '.join(said.about)}: {value} {said.text}"
        alike.setdefault((said.kind, NUMBERS.sub("N", text)), []).append(said)
    for same in alike.values():
        said = same[0]
        step = next((step for step in reversed(done) if step.at_us <= said.at_us), done[0])
        after = f"{(said.at_us - step.at_us) / 1e6:.1f} s after {step.kind} {' '.join(step.members)}"
        shown = (
            f"{said.value.kind}: {said.text} | {said.value.cause} {said.value.remedy}"
            if isinstance(said.value, Observation)
            else f"{' '.join(said.about)} {said.value} {said.text}"
        )
        yield f"{name}, {len(same)} times, first {after}: {said.kind} {shown}"


def write_lines(place: Path, values: Sequence[object]) -> None:
    """Write each value as a line of JSON."""
    place.write_bytes(gzip.compress(b"".join(msgspec.json.encode(it) + b"\n" for it in values), mtime=0))


def lines(place: Path) -> list[bytes]:
    """Return the lines of a compressed file."""
    return gzip.decompress(place.read_bytes()).splitlines()


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--cut", type=Path, help="put what is needed to judge them in a second in this folder")
    options = parser.parse_args()
    for given in options.folders:
        if options.cut:
            cut(given, options.cut / given.name)
        print(*report(options.cut / given.name if options.cut else given), sep="\n")
