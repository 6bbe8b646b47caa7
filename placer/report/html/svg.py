"""Drawings as SVG, in light colours: a few shapes and text."""

from collections.abc import Sequence
from html import escape

from placer.report.html import theme

FONT_FAMILY = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"
LETTER_WIDTH = 6.6  # width of a letter at 12 px, about


class Drawing:
    """Shapes in the order in which they were added, later ones above. `width`: pixels; the height is that of the lowest
    shape."""

    def __init__(self, width: float) -> None:
        self.width = width
        self.height = 0.0
        self._shapes: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, fill: str, line: str = "none") -> None:
        """A rectangle with round corners."""
        self._reaches(y + height)
        place = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}"'
        self._shapes.append(f'<rect {place} rx="3" fill="{fill}" stroke="{line}"/>')

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: float = 12,
        colour: str = "",
        anchor: str = "start",
        bold: bool = False,
    ) -> None:
        """A line of text; `y` is its baseline."""
        self._reaches(y + size / 2)
        weight = ' font-weight="600"' if bold else ""
        self._shapes.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{colour or theme.on_paper("ink")}" '
            f'text-anchor="{anchor}"{weight}>{escape(words)}</text>'
        )

    def curve(self, points: Sequence[tuple[float, float]], colour: str, width: float = 1.5) -> None:
        """A Bezier curve: its start, two points that bend it, and its end."""
        (start, *bends) = [f"{x:.1f} {y:.1f}" for x, y in points]
        path = f"M {start} C {', '.join(bends)}"
        self._shapes.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1.0) -> None:
        """A straight line."""
        self._reaches(max(y1, y2))
        ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        self._shapes.append(f'<line {ends} stroke="{colour}" stroke-width="{width:g}"/>')

    def svg(self) -> bytes:
        """The file."""
        height = self.height + 8
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:.0f} {height:.0f}" '
            f'width="{self.width:.0f}" height="{height:.0f}" font-family="{FONT_FAMILY}">'
        )
        return "\n".join([head, *self._shapes, "</svg>\n"]).encode()

    def _reaches(self, y: float) -> None:
        self.height = max(self.height, y)


def text_width(words: str) -> float:
    """About how wide a line of text is, pixels."""
    return len(words) * LETTER_WIDTH
