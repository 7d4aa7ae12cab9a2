"""Dialogs: what lies over a view, and ends with one answer."""

from __future__ import annotations

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, ScreenResultType


class Dialog(ModalScreen[ScreenResultType]):
    """A screen over a view that is dismissed once.

    Keys that were pressed before it went may still arrive at it. Textual would answer again, and take away what lies below.
    """

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        return super().dismiss(result) if self.app.screen is self else AwaitComplete()
