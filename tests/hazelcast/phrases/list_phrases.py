"""Lists what the product logs, from the class files of its jars: version, class, level and words of each call of a logger.

``.venv/bin/python -m tests.hazelcast.phrases.list_phrases`` writes `phrases.tsv` anew, from the jars that Maven has brought
(``mvn dependency:get -Dartifact=com.hazelcast:hazelcast:5.3.8``). What a program fills in stands as ``*``.

A call of a logger is found in the code of a method with the string constants that are loaded before it. That is exact for what
is put together in one expression, and for what is chosen among expressions it is the sum of them.
"""

from __future__ import annotations

import os
import re
import struct
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

VERSIONS = ("3.4", "3.12", "4.2.8", "5.0.5", "5.3.8", "5.5.0", "5.7.0")
PHRASES = Path(__file__).with_name("phrases.tsv")
JARS = Path(os.environ.get("MAVEN_REPOSITORY", Path.home() / ".m2" / "repository")) / "com" / "hazelcast" / "hazelcast"
PACKAGES = re.compile(
    r"com/hazelcast/(?:internal/)?(?:cluster/|partition/|server/|networking/|nio/tcp/|kubernetes/(?!KubernetesTopology)|spi/discovery/|"
    r"(?:instance/)?(?:impl/)?Node[.$])"
)
"""Of membership, joining, split brain, partitions and connections."""
LEVELS = {"severe": "SEVERE", "warning": "WARNING", "info": "INFO", "fine": "FINE", "finest": "FINEST"}
_LOGGERS = ("com/hazelcast/logging/ILogger", "java/util/logging/Logger", "com/hazelcast/logging/AbstractLogger")


_NO_WORDS = re.compile(
    r"hz[:.]|com\.hazelcast\.|hazelcast\.[a-z.]+$|kubernetes\.default\.svc$| migrations$| since destination | left the cluster"
)
"""Names of threads, loggers and properties; and what stands in the middle of a message, behind a choice."""


class Phrase(NamedTuple):
    """What one call of a logger writes."""

    version: str
    logger: str
    level: str
    words: str


class _ClassFile:
    """The constants and methods of a class file (chapter 4 of the specification of Java's virtual machine)."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 8
        self.pool: list[tuple[int, tuple[int, ...] | str]] = [(0, ())] * self._u2()
        self._read_pool()
        self._u2()
        self.name = self.utf8(self.pool[self._u2()][1][0])
        self._u2()
        for _ in range(self._u2()):
            self._u2()
        self._members()
        self.methods = [code for attributes in self._members() for name, code in attributes if name == "Code"]
        self.bootstraps = self._bootstraps(dict(self._attributes()))

    def _u2(self) -> int:
        self._at += 2
        return int.from_bytes(self._data[self._at - 2 : self._at], "big")

    def _u4(self) -> int:
        self._at += 4
        return int.from_bytes(self._data[self._at - 4 : self._at], "big")

    def _read_pool(self) -> None:
        number = 1
        while number < len(self.pool):
            tag = self._data[self._at]
            self._at += 1
            if tag == 1:
                length = self._u2()
                text = self._data[self._at : self._at + length].decode("utf-8", "replace")
                self._at += length
                self.pool[number] = (tag, text)
            elif tag in (5, 6):
                self._at += 8
                number += 1
            elif tag in (3, 4):
                self._at += 4
            elif tag == 15:
                self._at += 1
                self.pool[number] = (tag, (self._u2(),))
            else:
                places = (self._u2(),) if tag in (7, 8, 16, 19, 20) else (self._u2(), self._u2())
                self.pool[number] = (tag, places)
            number += 1

    def utf8(self, number: int) -> str:
        value = self.pool[number][1]
        return value if isinstance(value, str) else self.utf8(value[0])

    def _attributes(self) -> list[tuple[str, bytes]]:
        found = []
        for _ in range(self._u2()):
            name, length = self.utf8(self._u2()), self._u4()
            found.append((name, self._data[self._at : self._at + length]))
            self._at += length
        return found

    def _members(self) -> list[list[tuple[str, bytes]]]:
        found = []
        for _ in range(self._u2()):
            self._at += 6
            found.append(self._attributes())
        return found

    def _bootstraps(self, attributes: dict[str, bytes]) -> list[str]:
        """Return the recipe of each bootstrap method: the words of a concatenation, with \\x01 where something is filled in."""
        data, recipes, at = attributes.get("BootstrapMethods", b"\0\0"), [], 2
        for _ in range(int.from_bytes(data[:2], "big")):
            count = int.from_bytes(data[at + 2 : at + 4], "big")
            arguments = [int.from_bytes(data[at + 4 + 2 * n : at + 6 + 2 * n], "big") for n in range(count)]
            strings = [self.utf8(number) for number in arguments if self.pool[number][0] == 8]
            recipes.append(strings[0] if strings else "")
            at += 4 + 2 * count
        return recipes

    def member(self, number: int) -> tuple[str, str]:
        """Return the class and the name of a field or method."""
        place = self.pool[number][1]
        assert not isinstance(place, str)
        name_and_type = self.pool[place[1]][1]
        assert not isinstance(name_and_type, str)
        return self.utf8(place[0]), self.utf8(name_and_type[0])


_LENGTHS = {
    **dict.fromkeys(range(256), 1),
    **dict.fromkeys((16, 18, *range(21, 26), *range(54, 59), 169, 188), 2),
    **dict.fromkeys((17, 19, 20, 132, *range(153, 169), *range(178, 185), 187, 189, 192, 193, 198, 199), 3),
    **dict.fromkeys((185, 186, 200, 201), 5),
    197: 4,
}


def _operations(code: bytes) -> Iterator[tuple[int, bytes]]:
    length = int.from_bytes(code[4:8], "big")
    code, at = code[8 : 8 + length], 0
    while at < length:
        opcode, size = code[at], _LENGTHS[code[at]]
        if opcode == 196:  # wide
            size = 6 if code[at + 1] == 132 else 4
        elif opcode in (170, 171):
            start = at + 4 - at % 4
            if opcode == 170:
                low, high = struct.unpack(">ii", code[start + 4 : start + 12])
                size = start + 12 + 4 * (high - low + 1) - at
            else:
                size = start + 8 + 8 * int.from_bytes(code[start + 4 : start + 8], "big") - at
        if opcode == 18:
            yield opcode, b"\0" + code[at + 1 : at + 2]
        else:
            yield opcode, code[at + 1 : at + size]
        at += size


def phrases_of(version: str, data: bytes) -> Iterator[Phrase]:
    """Yield what the methods of a class file log."""
    read = _ClassFile(data)
    logger = read.name.rpartition("/")[2].partition("$")[0]
    for method in read.methods:
        strings: list[str] = []
        level = ""
        for opcode, operands in _operations(method):
            number = int.from_bytes(operands[:2], "big") if len(operands) > 1 else 0
            if opcode in (18, 19) and read.pool[number][0] == 8:
                strings += [text for text in [read.utf8(number)] if not _NO_WORDS.match(text)]
            elif opcode == 187 and read.utf8(number).endswith("StringBuilder"):
                strings = []
            elif opcode == 186:
                place = read.pool[number][1]
                if (recipe := read.bootstraps[place[0]] if not isinstance(place, str) else "") and "\x01" in recipe:
                    strings = [recipe.replace("\x01", "*")]
            elif opcode == 178 and read.member(number)[0] == "java/util/logging/Level":
                level = read.member(number)[1]
            elif opcode in (182, 185) and read.member(number)[0] in _LOGGERS:
                name = read.member(number)[1]
                written = LEVELS.get(name) or (level if name == "log" else "")
                if written and len("".join(strings).split()) > 1:
                    words = re.sub(r"%(?:\d+\$)?-?[\d.]*[sdx]|\{\}", "*", "*".join(strings))
                    yield Phrase(version, logger, written, re.sub(r"\s+", " ", re.sub(r"\*+", "*", words)).strip())
                strings = strings if name.startswith("is") else []


def phrases_in(version: str) -> Iterator[Phrase]:
    """Yield what one version logs in the packages that matter. Raises `FileNotFoundError` for a jar that is not there."""
    with zipfile.ZipFile(JARS / version / f"hazelcast-{version}.jar") as jar:
        for name in sorted(jar.namelist()):
            if name.endswith(".class") and PACKAGES.match(name):
                yield from phrases_of(version, jar.read(name))


def kept(file: Path = PHRASES) -> list[tuple[str, str, str, list[str]]]:
    """Return what is listed: logger, level, words, and the versions that log them."""
    rows = (line.split("\t") for line in file.read_text(encoding="utf-8").splitlines())
    return [(logger, level, words, versions.split()) for logger, level, words, versions in rows]


def write(phrases: Iterable[Phrase], file: Path = PHRASES) -> None:
    """Write each phrase once, with the versions that log it."""
    versions: dict[tuple[str, str, str], dict[str, None]] = {}
    for phrase in phrases:
        versions.setdefault((phrase.logger, phrase.level, phrase.words), {})[phrase.version] = None
    lines = ("\t".join((*row, " ".join(of_row))) for row, of_row in sorted(versions.items()))
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    write(phrase for version in sys.argv[1:] or VERSIONS for phrase in phrases_in(version))
