"""The views: each has a digit, its name at the prompt, and a place in the palette."""

from __future__ import annotations

from quarterdeck.app.actions.action import Action, ViewName, one_word


def _view(name: ViewName, short: str, key: str, meaning: str, cli: str, *more_keys: str) -> Action:
    keys = ",".join((key, *more_keys))
    return Action(
        name, name.replace("-", " "), meaning, keys, key, "Views",
        one_word(name, "nothing", "", meaning[0].lower() + meaning[1:].rstrip(".")), shown=name == "demos", short=short, cli=cli,
    )  # fmt: skip


ACTIONS: tuple[Action, ...] = (
    _view("overview", "over", "1", "Show the present state at one glance.", "cluster status"),
    _view("beliefs", "list", "W", "Show which members each member has on its list.", "cluster status"),
    _view("members", "memb", "2", "Show the members, one a row.", "cluster status"),
    _view("suspicions", "susp", "3", "Show who suspects whom, and what the master would decide.", "cluster suspicions"),
    _view("partitions", "part", "4", "Show who holds which replica of which partition.", "cluster table"),
    _view(
        "migrations", "migr", "5", "Show what migrates: planned, running, done and failed.", "cluster migrations", "v"
    ),
    _view("network", "net", "6", "Show the links between the members, and cut them.", "cluster fault --help"),
    _view(
        "join-lists", "join", "7", "Show where members look for others, and why clusters do not merge.", "cluster why"
    ),
    _view("events", "evts", "8", "Show what happened, and why.", "cluster watch"),
    _view("time", "time", "9", "Show the whole run, and go back in it.", ""),
    _view("audit", "audit", "0", "Show what the audit finds in this run.", ""),
    _view("demos", "demo", "D", "Show the demos, and learn with one.", "demo ls"),
)
