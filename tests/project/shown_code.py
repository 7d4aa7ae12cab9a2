"""What the documents show for people to type: command lines, curl lines, YAML."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?:^|\n\n)((?: {4}.*\n(?:\n(?= {4}))?)+)")
INLINE = re.compile(r"`(quarterdeck [^`\n]+)`")
PROGRAM = re.compile(r"^(?:\S*/)?quarterdeck(?= )")


@dataclass(frozen=True)
class Shown:
    """Something that a document shows."""

    document: Path
    text: str
    whole: bool = True
    """False for what running text only mentions: its arguments may be left out."""

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT)}: {' '.join(self.text.split())[:80]}"


def blocks(document: Path, language: str = "") -> Iterator[str]:
    """Fenced blocks of a language; without one, those without a language and what is indented."""
    text = document.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        if found[1] == language or (not language and found[1] in ("sh", "console")):
            yield found[2]
    if not language:
        for found in INDENTED.finditer(FENCE.sub("", text)):
            yield re.sub(r"^ {4}", "", found[1], flags=re.MULTILINE)


def command_lines(program: re.Pattern[str]) -> Iterator[Shown]:
    """The lines of blocks that call a program, whole, without what comes behind a pipe or a comment."""
    for document in DOCUMENTS:
        for block in blocks(document):
            for line in block.replace("\\\n", " ").splitlines():
                for part in re.split(r" \| (?!\w+')| && ", line.removeprefix("$ ").strip()):
                    if program.match(part):
                        yield Shown(document, part)


def quarterdeck_lines() -> Iterator[Shown]:
    """All calls of ``quarterdeck``, in blocks and in running text."""
    yield from command_lines(PROGRAM)
    for document in DOCUMENTS:
        for found in INLINE.finditer(document.read_text(encoding="utf-8")):
            yield Shown(document, found[1], whole=False)


def words_of(line: str) -> list[str]:
    """The arguments of a command line, without redirections and without a comment."""
    words = shlex.split(
        re.sub(r"[\[\]](?![\w:])|(?<= )\[", " ", line), comments=True
    )  # brackets mark what may be left out
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in ("<", ">", ">>", "2>", "&"):
            skip = word != "&"
        elif word not in ("…", "...") and not word.startswith("<<"):
            kept.append(word)
    return kept
