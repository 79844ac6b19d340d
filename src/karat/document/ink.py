"""Colours, light and dark: defined only here.

Categories are those of Okabe & Ito (2008), which people with any common colour blindness
can distinguish, in shades that have a contrast of 3 to 1 or more against the background. No chart
relies on colour alone: there are also names, shapes or dashes.
"""

from __future__ import annotations

import msgspec


class Ink(msgspec.Struct, frozen=True, kw_only=True):
    """The colours of a page or a chart, in CSS notation."""

    background: str
    text: str
    quiet: str
    grid: str
    mark: str
    categories: tuple[str, ...]
    steps: tuple[str, ...]  # of a scale, from its low end


LIGHT = Ink(
    background="#ffffff",
    text="#1b1b1b",
    quiet="#5c5c5c",
    grid="#e3e3e3",
    mark="#0072b2",
    # blue, vermillion, bluish green, reddish purple, black, orange, sky blue, yellow: the light
    # ones darkened
    categories=(
        "#0072b2",
        "#d55e00",
        "#00875f",
        "#b65f90",
        "#1b1b1b",
        "#a87400",
        "#2f87b8",
        "#7d7400",
    ),
    steps=("#d9e6f2", "#a9cbe4", "#6aa5cf", "#2d7db3", "#08467a"),
)
DARK = Ink(
    background="#16181d",
    text="#f0f0f0",
    quiet="#b4b4b4",
    grid="#343840",
    mark="#56b4e9",
    categories=(
        "#56b4e9",
        "#f07f2e",
        "#1fbf92",
        "#e19cc2",
        "#f0f0f0",
        "#e69f00",
        "#3f9bd8",
        "#f0e442",
    ),
    steps=("#23415c", "#2f668f", "#4a90c2", "#86bbe0", "#d6e9f8"),
)
INK = Ink(
    background="transparent",
    text="var(--text)",
    quiet="var(--quiet)",
    grid="var(--grid)",
    mark="var(--mark)",
    categories=tuple(f"var(--category-{at})" for at in range(len(LIGHT.categories))),
    steps=tuple(f"var(--step-{at})" for at in range(len(LIGHT.steps))),
)
"""Variables of a page, so that paper, light and dark need no second drawing."""
