"""Write the layouts of logs that are known, with their examples, into the page for contributors.

Run it as ``python -m docs.generators.log_layouts``; a test tells when the page is out of date.
"""

from __future__ import annotations

from pathlib import Path

from quarterdeck.backend.hazelcast.logs.lines.form import LAYOUTS

PAGE = Path(__file__).parents[1] / "contributors" / "log-layouts.md"
BEGIN, END = "<!-- layouts: written by `python -m docs.generators.log_layouts` -->\n", "<!-- end of the layouts -->\n"


def layouts() -> str:
    """A section for each row: what is special of it, and its examples."""
    parts: list[str] = []
    for layout in LAYOUTS:
        special = [
            f"`{name}`: `` {pattern} ``"
            for name, pattern in (("begins", layout.begins), ("lead", layout.lead), ("behind", layout.behind))
            if pattern
        ]
        about = ", ".join(special) or "read by the general rules"
        examples = "\n".join(layout.examples)
        parts.append(f"### {layout.name}\n\n{about}\n\n```\n{examples}\n```\n")
    return "\n".join(parts)


def page() -> str:
    """The page, with the layouts in their place."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{layouts()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
