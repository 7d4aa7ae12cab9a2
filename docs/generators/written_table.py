"""A table that a program writes into a page which people write, between two marks."""

from __future__ import annotations

END = "<!-- end of the rules -->\n"


def written_into(text: str, table: str, writer: str) -> str:
    """The page `text` with `table` in its place; `writer` is the module whose name stands in the first mark."""
    begin = f"<!-- rules: written by `python -m {writer}` -->\n"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(END)
    return f"{before}{begin}\n{table}\n{END}{after}"
