"""What a theme has to say: one colour a tone, one ground a place. The rest of Textual's colours follow from these."""

from __future__ import annotations

from dataclasses import dataclass

from textual.theme import Theme


@dataclass(frozen=True)
class ColourPalette:
    """Colours as ``#rrggbb``. Every tone is read on every ground but `edge`, so each pair has to contrast."""

    name: str
    dark: bool

    # Grounds
    background: str
    surface: str
    """Of dialogs."""
    panel: str
    """Of headings and of the line at the bottom."""
    cursor: str
    """Of the row under the cursor of the widget that has the focus."""
    cursor_blurred: str
    outlier: str
    """Of rows that stand out."""

    # Tones
    plain: str
    faint: str
    good: str
    strong: str
    warning: str
    bad: str

    edge: str
    """Of borders and scroll bars; no text stands on it."""

    @property
    def grounds(self) -> dict[str, str]:
        return {
            "background": self.background, "surface": self.surface, "panel": self.panel, "cursor": self.cursor,
            "cursor_blurred": self.cursor_blurred, "outlier": self.outlier,
        }  # fmt: skip

    @property
    def tones(self) -> dict[str, str]:
        return {
            "plain": self.plain, "faint": self.faint, "good": self.good, "strong": self.strong,
            "warning": self.warning, "bad": self.bad,
        }  # fmt: skip

    def theme(self) -> Theme:
        """The theme that paints so. The style sheets name the tones as Textual does: ``$text-success`` and so on."""
        return Theme(
            name=self.name,
            dark=self.dark,
            primary=self.strong,
            secondary=self.edge,
            accent=self.strong,
            success=self.good,
            warning=self.warning,
            error=self.bad,
            foreground=self.plain,
            background=self.background,
            surface=self.surface,
            panel=self.panel,
            variables={
                "text": self.plain,
                "text-muted": self.faint,
                "text-disabled": self.faint,
                "foreground-muted": self.faint,
                "text-success": self.good,
                "text-primary": self.strong,
                "text-accent": self.strong,
                "text-warning": self.warning,
                "text-error": self.bad,
                "primary-muted": self.cursor,
                "surface-lighten-2": self.cursor_blurred,
                "warning-muted": self.outlier,
                "border": self.edge,
                "border-blurred": self.edge,
                "scrollbar": self.edge,
                "scrollbar-hover": self.edge,
                "scrollbar-active": self.strong,
                "scrollbar-background": self.panel,
                "footer-key-foreground": self.strong,
                "block-cursor-foreground": self.plain,
                "block-cursor-background": self.cursor,
                "block-cursor-blurred-foreground": self.plain,
                "block-cursor-blurred-background": self.cursor_blurred,
                "block-hover-background": self.cursor_blurred,
                "input-selection-background": self.cursor,
                "button-foreground": self.plain,
                "button-color-foreground": self.background,
            },
        )
