"""Encodes a report and writes it to a file. Imports no Spark."""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path

import msgspec

from quarterdeck.backend.pipeline.report.rows import Row
from quarterdeck.backend.pipeline.spark.requirements import PipelineMissing

FORMATS = (".html", ".md", ".json")
READABLE = 0o644
"""Others may read a report, but not the temporary files of `mkstemp`."""


class ReportRefused(ValueError):
    """A report cannot be written there. The message says why."""


def check_destination(path: Path) -> None:
    """Check, before long work, that `write_report` can write to `path`. Raises `ReportRefused` and `PipelineMissing`."""
    if find_spec("jinja2") is None:
        raise PipelineMissing()
    if path.suffix.lower() not in FORMATS:
        raise ReportRefused(f"{path}: a report is a file that ends with {', '.join(FORMATS)}")
    if path.is_dir():
        raise ReportRefused(f"{path} is a directory; name a file")
    if not path.parent.is_dir():
        raise ReportRefused(f"{path.parent}: no such directory; make it first")


def as_bytes(report: Row, form: str) -> bytes:
    """Encode the report in one of `FORMATS`."""
    if form == ".json":
        return msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"
    if form == ".md":
        from quarterdeck.backend.pipeline.report.rendering import as_markdown

        return as_markdown(report).encode()
    from quarterdeck.backend.pipeline.report.rendering import as_html

    return as_html(report).encode()


def write_report(report: Row, path: Path) -> None:
    """Write the report in the format of the file name, whole or not at all. Raises `ReportRefused` and OSError."""
    check_destination(path)
    content = as_bytes(report, path.suffix.lower())
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".report-", delete=False) as file:
        building = Path(file.name)
        try:
            file.write(content)
            file.flush()
            building.chmod(READABLE)
            building.replace(path)
        except OSError:
            building.unlink(missing_ok=True)
            raise
