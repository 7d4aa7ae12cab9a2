"""Write the JSON Schemas beside what reads them: run ``python -m docs.generators.json_schemas``.

The first line of each shipped scenario and model names its schema, so that editors complete it. Git ignores the schemas; an
installation and a release make them anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

from quarterdeck.cli.commands.settings import FileKind, schema_of

FOLDER = Path(__file__).parents[2] / "backend" / "documents" / "schemas"


def write_schemas(folder: Path = FOLDER) -> None:
    """Write the schema of every kind of file."""
    folder.mkdir(exist_ok=True)
    for kind in get_args(FileKind):
        text = json.dumps(schema_of(kind), indent=1) + "\n"
        (folder / f"{kind}.schema.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_schemas()
