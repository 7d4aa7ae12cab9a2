"""What the site has beside the pages of `docs`: the README and the changelog, and the sections in the order of readers."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure import StructureItem
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
FROM_ABOVE = {
    "README.md": "readme.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "LICENSE": "license.txt",
}
LIGHT = ROOT / "build" / "light-pictures"
"""The pictures of views in the light theme, which `make docs` draws before it builds the site."""

PICTURE = re.compile(r"(?P<link>!\[[^]]*\]\([./]*screenshots/views/(?P<name>[\w-]+))\.svg\)")
ITEM = re.compile(r"(?:[*-]|\d+\.) ")
ORDER = ["Index", "Readme", "Console", "Operators", "Trainers", "Engineers", "Spark", "Reference", "Contributors"]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what stands above `docs`, with links as they are seen from there."""
    for name, place in FROM_ABOVE.items():
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        for other, its_place in FROM_ABOVE.items():
            text = text.replace(f"]({other})", f"]({its_place})")
        files.append(File.generated(config, place, content=text))
    for picture in sorted(LIGHT.glob("views/*.svg")):
        files.append(File.generated(config, f"screenshots/views/{picture.stem}-light.svg", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to what stands above `docs` lead to its page, and show the picture of the reader's theme."""
    for name, place in FROM_ABOVE.items():
        markdown = re.sub(rf"\]\((?:\.\./)((?:\.\./)*){re.escape(name)}", rf"](\g<1>{place}", markdown)
    return PICTURE.sub(_in_both_themes, _with_deep_items(markdown))


def _with_deep_items(markdown: str) -> str:
    """Return the page with what belongs to an item of a list behind four blanks, as this renderer wants it."""
    lines, width = [], 0
    for line in markdown.splitlines():
        if marker := ITEM.match(line):
            width = len(marker[0])
        elif width and line.startswith(" " * width):
            line = "    " + line[width:]
        elif line.strip():
            width = 0
        lines.append(line)
    return "\n".join(lines)


def _in_both_themes(picture: re.Match[str]) -> str:
    if not (LIGHT / "views" / f"{picture['name']}.svg").exists():
        return picture[0]
    return f"{picture['link']}.svg#only-dark){picture['link']}-light.svg#only-light)"


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Put sections in the order of readers, and what has no place of its own behind them."""

    def place(item: StructureItem) -> int:
        title = item.title or Path(item.file.src_uri).stem.title() if isinstance(item, Page) else str(item.title)
        return ORDER.index(title) if title in ORDER else len(ORDER)

    nav.items.sort(key=place)
    return nav
