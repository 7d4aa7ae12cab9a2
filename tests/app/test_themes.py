"""Themes that can be read: contrast by WCAG, and what a deuteranope sees of good and bad."""

from __future__ import annotations

import colorsys
import itertools
import re
from pathlib import Path

import pytest
from textual.color import Color

from quarterdeck.app.themes import ANSI, DEFAULT_THEME, PALETTES, THEMES, ColourPalette, NoSuchTheme, theme_called
from quarterdeck.widgets.replica_map import HUES

PARTITIONS_STYLE = Path(__file__).parents[2] / "app" / "console.tcss"

TONE_VARIABLES = {
    "good": "text-success", "strong": "text-primary", "warning": "text-warning", "bad": "text-error",
    "faint": "text-muted", "plain": "foreground",
}  # fmt: skip
GROUND_VARIABLES = {
    "background": "background", "surface": "surface", "panel": "panel", "cursor": "primary-muted",
    "cursor_blurred": "surface-lighten-2", "outlier": "warning-muted",
}  # fmt: skip

LINEAR_DEUTERANOPIA = (
    (0.367322, 0.860646, -0.227968),
    (0.280085, 0.672501, 0.047413),
    (-0.011820, 0.042940, 0.968881),
)
"""Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB."""


def linear(color: str) -> tuple[float, float, float]:
    channels = (channel / 255 for channel in Color.parse(color).rgb)
    red, green, blue = (
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4 for channel in channels
    )
    return red, green, blue


def luminance(rgb: tuple[float, float, float]) -> float:
    return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(linear(one)), luminance(linear(other))), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def as_seen_by_a_deuteranope(color: str) -> tuple[float, float, float]:
    seen = linear(color)
    red, green, blue = (
        min(max(sum(weight * channel for weight, channel in zip(row, seen, strict=True)), 0.0), 1.0)
        for row in LINEAR_DEUTERANOPIA
    )
    return red, green, blue


def least_contrast(palette: ColourPalette) -> float:
    return 7.0 if palette.name == "high-contrast" else 4.5


@pytest.mark.parametrize("palette", PALETTES, ids=lambda palette: palette.name)
def test_every_tone_is_readable_on_every_ground(palette: ColourPalette) -> None:
    css = {**palette.theme().to_color_system().generate(), **palette.theme().variables}
    for tone in TONE_VARIABLES:
        color = getattr(palette, tone)
        assert Color.parse(css[TONE_VARIABLES[tone]]) == Color.parse(color)
        for ground, variable in GROUND_VARIABLES.items():
            under = getattr(palette, ground)
            assert Color.parse(css[variable]) == Color.parse(under)
            ratio = contrast(color, under)
            assert ratio >= least_contrast(palette), f"{tone} on {ground}: {ratio:.2f}"


REPLICA_STATES = (("text-error", "error-muted"), ("text-warning", "warning-muted"), ("text-primary", "primary-muted"))


@pytest.mark.parametrize("palette", PALETTES, ids=lambda palette: palette.name)
def test_marks_of_the_replica_map_are_readable(palette: ColourPalette) -> None:
    css = {**palette.theme().to_color_system().generate(), **palette.theme().variables}
    for text, ground in REPLICA_STATES:
        assert contrast(css[text], css[ground]) >= 4.5, (text, ground)


def test_colours_of_members_are_readable_under_black_and_differ_without_colour() -> None:
    hues = re.findall(r"\.replica-map--hue\d.*background: (#\w+); color: #000000", PARTITIONS_STYLE.read_text("utf-8"))
    assert len(hues) == HUES
    for hue in hues:
        assert contrast(hue, "#000000") >= 4.5, hue
    greys = sorted(brightness(hue) for hue in hues)
    assert min(after - before for before, after in itertools.pairwise(greys)) >= 15, greys


def brightness(color: str) -> float:
    """What an eye without colours sees, of 255."""
    red, green, blue = Color.parse(color).rgb
    return (red * 299 + green * 587 + blue * 114) / 1000


@pytest.mark.parametrize("palette", PALETTES, ids=lambda palette: palette.name)
def test_words_on_coloured_buttons_and_in_the_footer_are_readable(palette: ColourPalette) -> None:
    css = {**palette.theme().to_color_system().generate(), **palette.theme().variables}
    for ground in ("error", "warning", "success", "primary"):
        assert contrast(css["button-color-foreground"], css[ground]) >= 4.5
    for text in ("footer-foreground", "footer-key-foreground", "footer-description-foreground"):
        assert contrast(css[text], css["footer-background"]) >= least_contrast(palette)


@pytest.mark.parametrize("palette", PALETTES, ids=lambda palette: palette.name)
def test_a_cursor_and_an_outlier_are_seen_against_the_ground(palette: ColourPalette) -> None:
    grounds = {palette.background, palette.cursor, palette.cursor_blurred, palette.outlier}
    assert len(grounds) == 4


def test_a_deuteranope_tells_good_from_bad_by_hue_and_by_light() -> None:
    palette = next(palette for palette in PALETTES if palette.name == "deuteranopia")
    good = as_seen_by_a_deuteranope(palette.good)
    for tone in (palette.warning, palette.bad):
        seen = as_seen_by_a_deuteranope(tone)
        # Of what is left to such eyes, the axis from blue to yellow: good lies at its one end, the others at the other.
        assert good[2] - (good[0] + good[1]) / 2 > 0.2
        assert (seen[0] + seen[1]) / 2 - seen[2] > 0.2
        assert abs(colorsys.rgb_to_hsv(*good)[0] - colorsys.rgb_to_hsv(*seen)[0]) > 0.3
    for one, other in ((palette.good, palette.bad), (palette.warning, palette.bad)):
        lights = sorted(luminance(as_seen_by_a_deuteranope(color)) + 0.05 for color in (one, other))
        assert lights[1] / lights[0] > 1.5


def test_an_ordinary_theme_would_not_do_for_a_deuteranope() -> None:
    """The simulation tells: red and green of the dark theme end up on the same side of the axis."""
    palette = next(palette for palette in PALETTES if palette.name == "dark")
    good, bad = as_seen_by_a_deuteranope(palette.good), as_seen_by_a_deuteranope(palette.bad)
    assert all((seen[0] + seen[1]) / 2 > seen[2] - 0.02 for seen in (good, bad))


def test_the_ansi_theme_names_no_colour_of_its_own() -> None:
    assert ANSI.ansi
    named = (ANSI.primary, ANSI.secondary, ANSI.warning, ANSI.error, ANSI.success, ANSI.foreground, ANSI.background)
    assert all(color is not None and color.startswith("ansi_") for color in named)
    assert not any(value.startswith("#") for value in ANSI.variables.values())


def test_themes_go_by_name() -> None:
    assert tuple(THEMES) == ("dark", "light", "high-contrast", "deuteranopia", "ansi")
    assert theme_called(DEFAULT_THEME) is THEMES["dark"]
    with pytest.raises(NoSuchTheme, match="there is no theme 'drak'; themes are dark, light"):
        theme_called("drak")
