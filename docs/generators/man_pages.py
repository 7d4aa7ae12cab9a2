"""Write what shells look for in `share`: a man page for each command and the completions of bash, zsh and fish.

Run it as ``python -m docs.generators.man_pages FOLDER``; ``make release`` does so, and the wheel of a release holds the folder.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
import typer.main
from typer._completion_shared import get_completion_script

from quarterdeck import __version__
from quarterdeck.cli.exits import ExitCode
from quarterdeck.cli.main import COMPLETION, whole_app

PROGRAM = "quarterdeck"
COMPLETIONS = {
    "bash": f"bash-completion/completions/{PROGRAM}",
    "zsh": f"zsh/site-functions/_{PROGRAM}",
    "fish": f"fish/vendor_completions.d/{PROGRAM}.fish",
}


def write_share(folder: Path) -> None:
    """Write all pages and completions below this folder, which stands for `/usr/share`."""
    pages = {f"man/man1/{name}.1": page for name, page in man_pages().items()}
    scripts = {
        path: get_completion_script(prog_name=PROGRAM, complete_var=COMPLETION, shell=shell) + "\n"
        for shell, path in COMPLETIONS.items()
    }
    for path, text in (pages | scripts).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def man_pages() -> dict[str, str]:
    """Return the page of the program and of each of its commands, by name; commands of a group stand on the group's page."""
    program = typer.main.get_command(whole_app())
    context = typer.Context(program, info_name=PROGRAM, **program.context_settings)
    names = [name for name, command in program.commands.items() if not command.hidden]  # type: ignore[attr-defined]
    others = ", ".join(f"\\fB{PROGRAM}-{_escaped(name)}\\fR(1)" for name in names)
    pages = {PROGRAM: [*_head(PROGRAM, program.help), *_commands(program, context), *_exits(), ".SH SEE ALSO", others]}
    for name in names:
        command = program.commands[name]  # type: ignore[attr-defined]
        own = typer.Context(command, info_name=name, parent=context)
        page = [*_head(f"{PROGRAM}-{name}", command.help), *_synopsis(command, own), *_options(command, own)]
        for sub, inner in sorted(getattr(command, "commands", {}).items()):
            if not inner.hidden:
                page += _described(sub, inner, typer.Context(inner, info_name=sub, parent=own))
        pages[f"{PROGRAM}-{name}"] = [*page, *_exits(), ".SH SEE ALSO", f"\\fB{PROGRAM}\\fR(1)"]
    return {name: "\n".join(lines) + "\n" for name, lines in pages.items()}


def _head(name: str, text: str | None) -> list[str]:
    first, _, rest = (text or "").partition("\n\n")
    title = f'.TH {_escaped(name.upper())} 1 "" "Quarterdeck {__version__}" "Quarterdeck"'
    described = [".SH DESCRIPTION", *_paragraphs(rest)] if rest else []
    return [title, ".SH NAME", f"{_escaped(name)} \\- {_escaped(_one_line(first).rstrip('.'))}", *described]


def _commands(group: Any, context: typer.Context) -> Iterator[str]:
    yield from _synopsis(group, context)
    yield ".SH COMMANDS"
    for name, command in group.commands.items():
        if not command.hidden:
            yield from (
                ".TP",
                f"\\fB{_escaped(name)}\\fR",
                _escaped(_one_line((command.help or "").partition("\n\n")[0])),
            )


def _described(name: str, command: Any, context: typer.Context) -> Iterator[str]:
    yield f".SH {_escaped(context.command_path.upper())}"
    yield from _paragraphs(command.help or "")
    yield from _synopsis(command, context, ".SS Synopsis")
    yield from _options(command, context, ".SS Options")
    for sub, inner in sorted(getattr(command, "commands", {}).items()):
        if not inner.hidden:
            yield from _described(sub, inner, typer.Context(inner, info_name=sub, parent=context))


def _synopsis(command: Any, context: typer.Context, heading: str = ".SH SYNOPSIS") -> list[str]:
    return [
        heading,
        f"\\fB{_escaped(context.command_path)}\\fR {_escaped(' '.join(command.collect_usage_pieces(context)))}",
    ]


def _options(command: Any, context: typer.Context, heading: str = ".SH OPTIONS") -> Iterator[str]:
    rows = [row for parameter in command.get_params(context) if (row := parameter.get_help_record(context))]
    if rows:
        yield heading
    for words, text in rows:
        yield from (".TP", f"\\fB{_escaped(words)}\\fR", _escaped(_one_line(text)))


def _exits() -> Iterator[str]:
    yield ".SH EXIT STATUS"
    for code in ExitCode:
        yield from (".TP", str(code.value), _escaped(code.name.lower().replace("_", " ")))


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in filter(None, text.split("\n\n")):
        yield from (".PP", _escaped(_one_line(paragraph)))


def _one_line(text: str) -> str:
    return " ".join(text.replace("\b", " ").split())


def _escaped(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped


if __name__ == "__main__":
    write_share(Path(sys.argv[1]))
