"""The colours of the wings: Okabe and Ito's, which people tell apart with any colour vision.

Each theme takes those that stand out from its background. Colour is never the only sign: the
drawing also gives each wing its own dashes, marks and bars.
"""

from dlplay.frameworks import WINGS

#: By theme, in the order of the styles: a wing's style is its place in ``WINGS``.
PALETTE = {
    "light": ["#D55E00", "#0072B2", "#00815E", "#B0528A"],
    "dark": ["#E69F00", "#56B4E9", "#2BC79C", "#CC79A7"],
}


def style(wing: str) -> int:
    """The number of a wing's colour, dashes and marks: always the same for the same wing."""
    return WINGS.index(wing) if wing in WINGS else len(WINGS)


def contrast(first: str, second: str) -> float:
    """The contrast ratio of two ``#rrggbb`` colours, from 1 to 21 (WCAG 2)."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
