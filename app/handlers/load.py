"""Traffic on a map, begun and ended from the console."""

from __future__ import annotations

from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.session import ConsoleSession


def change_load(console: ConsoleInterface, session: ConsoleSession, text: str) -> None:
    """Begin the load that `text` describes, in place of the one that there is; `off` ends that; nothing asks for more words."""
    from quarterdeck.backend.clusters.traffic import Traffic, load_of

    if not text:
        console.type_line("load ")
        return
    going_on = session.traffic
    if text.strip() == "off":
        if going_on is None or going_on.over:
            console.show_message("no load was begun here, or it is over")
        else:
            going_on.finish(session.cluster.now_us())
        return
    running = [label for label, belief in session.picture.members.items() if belief.running]
    try:
        load = load_of(text, running)
    except ValueError as problem:
        console.show_message(str(problem), error=True)
        return
    session.traffic = Traffic(session.cluster, load, session.cluster.now_us())
    console.show_message(f"{load.text()}; :load off ends it")
