"""This package as one zip file from which executors import it: equal sources give equal bytes."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

ROOT = Path(str(files("quarterdeck")))
"""The folder of this package."""

SHIPPED = ("__init__.py", "backend")
"""All that a worker may need; the screens are left out."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can contain; a real one would make equal sources differ."""


def write_package(folder: Path) -> Path:
    """Write the zip file into `folder`; its name is derived from its content, so that versions are not confused."""
    path = folder / f"quarterdeck-{sources_digest()}.zip"
    with ZipFile(path, "w") as package:
        for name, content in _sources():
            info = ZipInfo(name, _EPOCH)
            info.compress_type = ZIP_DEFLATED
            package.writestr(info, content)
    return path


def sources_digest() -> str:
    """Return a short digest of every file of the package."""
    digest = sha256()
    for name, content in _sources():
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:12]


def _sources() -> Iterator[tuple[str, bytes]]:
    for name in SHIPPED:
        top = ROOT / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and "__pycache__" not in path.parts:
                yield f"quarterdeck/{path.relative_to(ROOT).as_posix()}", path.read_bytes()
