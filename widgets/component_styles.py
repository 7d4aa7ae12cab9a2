"""Styles of the component classes of a widget, each looked up in the style sheet when it is painted first.

Textual looks up all that are declared whenever the style of the widget may have changed, as at each change of the focus. A table
has fifteen and paints in four, and the first view has thirty widgets: that was half of the time between the imports and the first
picture. So none is declared here.
"""

from __future__ import annotations

from textual.css.styles import RenderStyles
from textual.dom import DOMNode
from textual.widget import Widget


class ComponentStyles(Widget):
    """A widget that is painted in styles of component classes, asked for as Textual has it."""

    def get_component_styles(self, *names: str) -> RenderStyles:
        for name in names:
            if name not in self._component_styles:
                node = DOMNode(classes=name)
                node._attach(self)
                self.app.stylesheet.apply(node)
                self._component_styles[name] = node.styles
        return super().get_component_styles(*names)

    def notify_style_update(self) -> None:
        if self._component_styles:  # it was painted with what may be out of date now
            self._component_styles.clear()
            self.refresh()
        super().notify_style_update()
