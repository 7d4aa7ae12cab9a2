"""The themes of the console by the names that operators give them with `:theme`, `--theme` and `theme:`."""

from __future__ import annotations

from msgspec import Struct
from textual.theme import Theme

from quarterdeck.backend.picture.text.formatting import Refusal


class ColourPalette(Struct, frozen=True):
    """The colours of a theme as ``#rrggbb``; the rest of Textual's colours follow from them.

    Every tone is read on every ground but `edge`, so each pair has to contrast.
    """

    name: str
    dark: bool

    # Grounds
    background: str
    surface: str
    """The ground of dialogs."""
    panel: str
    """The ground of headings and of the line at the bottom."""
    cursor: str
    """The ground of the row under the cursor in the focused widget."""
    cursor_blurred: str
    outlier: str
    """The ground of rows that stand out."""

    # Tones
    plain: str
    faint: str
    good: str
    strong: str
    warning: str
    bad: str

    edge: str
    """Borders and scroll bars; no text stands on it."""

    def theme(self) -> Theme:
        """Return the theme of these colours. The style sheets name the tones as Textual does: ``$text-success`` and so on."""
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
            variables={name: colour for colour, names in self._uses() for name in names.split()},
        )

    def _uses(self) -> tuple[tuple[str, str], ...]:
        """Return the names that Textual's style sheets have for each colour."""
        return (
            (self.plain, "text button-foreground block-cursor-foreground block-cursor-blurred-foreground"),
            (self.faint, "text-muted text-disabled foreground-muted"),
            (self.good, "text-success"),
            (self.strong, "text-primary text-accent scrollbar-active footer-key-foreground"),
            (self.warning, "text-warning"),
            (self.bad, "text-error"),
            (self.cursor, "primary-muted block-cursor-background input-selection-background"),
            (self.cursor_blurred, "surface-lighten-2 block-cursor-blurred-background block-hover-background"),
            (self.outlier, "warning-muted"),
            (self.edge, "border border-blurred scrollbar scrollbar-hover"),
            (self.panel, "scrollbar-background"),
            (self.background, "button-color-foreground"),
        )


DEFAULT_THEME = "dark"

PALETTES = (
    ColourPalette(
        "dark", dark=True,
        background="#101418", surface="#161c22", panel="#1d252c", cursor="#1c3a57", cursor_blurred="#2a333b",
        outlier="#3a2c0a",
        plain="#e6e9ec", faint="#a4aeb7", good="#74d191", strong="#7fc4ff", warning="#ffc24f", bad="#ff9a94",
        edge="#3d5a75",
    ),
    ColourPalette(
        "light", dark=False,
        background="#fbfbfa", surface="#f2f3f3", panel="#e6e9eb", cursor="#cfe3f7", cursor_blurred="#dde1e4",
        outlier="#fbeac2",
        plain="#1b2025", faint="#4b545c", good="#0f5527", strong="#0a4a8c", warning="#6b3f00", bad="#98101a",
        edge="#8fa9c2",
    ),
    # Seven to one and more, the ratio of WCAG's level AAA, on black.
    ColourPalette(
        "high-contrast", dark=True,
        background="#000000", surface="#000000", panel="#141414", cursor="#00305c", cursor_blurred="#262626",
        outlier="#332600",
        plain="#ffffff", faint="#d4d4d4", good="#6dff9b", strong="#9ad4ff", warning="#ffd83d", bad="#ffb3ad",
        edge="#9ad4ff",
    ),
    # For eyes that do not distinguish red from green: good is blue, what is not good goes from ochre to a bright yellow.
    ColourPalette(
        "deuteranopia", dark=True,
        background="#101418", surface="#161c22", panel="#1d252c", cursor="#2d3742", cursor_blurred="#262d34",
        outlier="#332f14",
        plain="#e6e9ec", faint="#a4aeb7", good="#6ca6ff", strong="#b9d3ff", warning="#d6a53a", bad="#ffe680",
        edge="#4f5f70",
    ),
)  # fmt: skip

ANSI = Theme(
    "ansi", ansi=True, dark=True,
    primary="ansi_cyan", secondary="ansi_blue", accent="ansi_cyan", success="ansi_green", warning="ansi_yellow",
    error="ansi_red", foreground="ansi_default", background="ansi_default", surface="ansi_default",
    panel="ansi_default", boost="ansi_default",
    variables={
        **dict.fromkeys(
            ("ansi-background", "ansi-foreground", "primary-muted", "surface-lighten-2", "warning-muted", "text-muted",
             "foreground-muted", "border", "block-cursor-foreground", "block-cursor-background"), "ansi_default",
        ),
        "footer-key-foreground": "ansi_cyan", "input-cursor-text-style": "reverse",
    },
)  # fmt: skip
"""The terminal's own sixteen colours on its own ground, for operators who have chosen their own palette.

How well texts contrast depends on the terminal; the cursor is shown by reverse video.
"""

THEMES: dict[str, Theme] = {**{palette.name: palette.theme() for palette in PALETTES}, ANSI.name: ANSI}
"""The themes by name, in the order in which they are offered."""


class NoSuchTheme(Refusal):
    """There is no theme of this name; the message lists the names."""


def theme_called(name: str) -> Theme:
    """Return the theme of this name. Raises `NoSuchTheme`."""
    if name not in THEMES:
        raise NoSuchTheme(f"there is no theme {name!r}; themes are {', '.join(THEMES)}")
    return THEMES[name]
