"""Checkpoints: a search as it is kept in a folder, to be gone on with.

One checkpoint is whole before the one before it goes. It holds pickled objects: take none from people whose programs you
would not run.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from quarterdeck.backend import core, simulation
from quarterdeck.backend.simulation.model_checking.share import ShareSettings

MANIFEST = "checkpoint.json"


class BadCheckpoint(Exception):
    """A checkpoint that cannot be continued. The message names the folder, the reason, and the remedy."""


class CheckpointManifest(Struct, frozen=True):
    """The search of a checkpoint, and the files that belong to it."""

    model: str
    """Digest of the model, its bounds included."""
    program: str
    """Digest of the program: the findings of another program may not hold for this one."""
    shares: int
    memory_bytes: int
    by_history: bool
    depth: int
    seconds: float
    files: dict[str, str]
    """Their digests by name."""


class Checkpoint(Struct, frozen=True):
    """A search to be gone on with. It goes on with as many processes as it had."""

    folder: Path
    settings: ShareSettings
    depth: int
    seconds: float


class Checkpoints:
    """The checkpoints of one search, of which the latest is kept."""

    def __init__(self, folder: Path, settings: ShareSettings) -> None:
        self._folder = folder
        self.settings = settings
        """The settings written into the next checkpoint: a search that goes on keeps its number of processes."""

    def latest(self) -> Checkpoint | None:
        """Return the checkpoint that is there, or None.

        Raises:
            BadCheckpoint: It is damaged, or not of this search.
        """
        file = self._folder / MANIFEST
        try:
            manifest = msgspec.json.decode(file.read_bytes(), type=CheckpointManifest)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as problem:
            raise BadCheckpoint(f"{file}: {problem}; delete the folder to begin anew") from None
        settings = self.settings
        wanted = (digest_of(repr(settings.model)), program_digest(), settings.by_history)
        if (manifest.model, manifest.program, manifest.by_history) != wanted:
            raise BadCheckpoint(
                f"{file}: is of another model, of other bounds or of another version of the program; "
                "give another folder, or delete this one to begin anew"
            )
        for name, digest in manifest.files.items():
            path = self._folder / name
            if not path.is_file() or _digest_of_file(path) != digest:
                raise BadCheckpoint(f"{path}: is damaged or missing; delete the folder to begin anew")
        folder = self._folder / Path(next(iter(manifest.files))).parent
        shares = ShareSettings(settings.model, manifest.shares, manifest.memory_bytes, manifest.by_history)
        return Checkpoint(folder, shares, manifest.depth, manifest.seconds)

    def write(self, write: Callable[[Path], object], depth: int, seconds: float) -> None:
        """Make a checkpoint of the files that `write` writes into the given folder."""
        before = sorted(self._folder.glob("generation-*"))
        number = int(before[-1].name.rpartition("-")[2]) + 1 if before else 1
        generation = self._folder / f"generation-{number:06}"
        generation.mkdir(parents=True)
        write(generation)
        files = {f"{generation.name}/{path.name}": _digest_of_file(path) for path in sorted(generation.iterdir())}
        settings = self.settings
        manifest = CheckpointManifest(
            model=digest_of(repr(settings.model)),
            program=program_digest(),
            shares=settings.shares,
            memory_bytes=settings.memory_bytes,
            by_history=settings.by_history,
            depth=depth,
            seconds=seconds,
            files=files,
        )
        new = self._folder / f"{MANIFEST}.new"
        new.write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
        new.replace(self._folder / MANIFEST)
        for path in before:
            shutil.rmtree(path)

    def remove(self) -> None:
        """Remove all checkpoints, for the search has come to its end."""
        (self._folder / MANIFEST).unlink(missing_ok=True)
        for path in self._folder.glob("generation-*"):
            shutil.rmtree(path)
        if self._folder.is_dir() and not any(self._folder.iterdir()):
            self._folder.rmdir()


def digest_of(text: str) -> str:
    """Return a short name for a text."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@cache
def program_digest() -> str:
    """Return a digest that distinguishes versions of the program: its core, the search, and the Python that runs them."""
    found = hashlib.blake2b(sys.version.encode(), digest_size=16)
    for package in (core, simulation):
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*.py")):
            found.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return found.hexdigest()


def _digest_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
