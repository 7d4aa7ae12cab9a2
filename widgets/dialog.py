"""Dialogs: screens over a view that end with one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from textual.await_complete import AwaitComplete
from textual.geometry import Region
from textual.screen import ModalScreen, ScreenResultType

if TYPE_CHECKING:

    class _ModalScreen(ModalScreen[Any]): ...

else:
    _ModalScreen = object  # Textual takes styles and bindings over from the first base that is a widget


class OverView(_ModalScreen):
    """The behaviour of a screen over a view besides `ModalScreen`, or besides a screen of Textual's own that is built on it."""

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Answer and go, once.

        Keys that were pressed before it went may still arrive at it. Textual would answer again, and take away what lies below.
        """
        return super().dismiss(result) if self.app.screen is self else AwaitComplete()

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """Repaint. Where the view below has painted `regions`, what else is dirty here stays so: Textual would forget it."""
        if not regions or layout or recompose:
            super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
        else:
            self._set_dirty(*regions)
            self._dirty_widgets.add(self)
            self.check_idle()
        return self


class Dialog(OverView, ModalScreen[ScreenResultType]):
    """A dialog of the console."""
