"""Where a label can stand without covering anything: plain geometry, in whatever unit the caller measures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

Place = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """An upright rectangle.

    Attributes:
        left: Its left edge.
        bottom: Its lower edge.
        right: Its right edge.
        top: Its upper edge.
    """

    left: float
    bottom: float
    right: float
    top: float

    @property
    def centre(self) -> Place:
        """Its middle."""
        return (self.left + self.right) / 2, (self.bottom + self.top) / 2

    def shared_area(self, other: Box) -> float:
        """Measure the overlap with another box.

        Args:
            other: The other box.

        Returns:
            The area that both cover.
        """
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(width, 0.0) * max(height, 0.0)

    def holds(self, place: Place) -> bool:
        """Tell whether a place lies in the box.

        Args:
            place: The place.

        Returns:
            Whether it does.
        """
        return self.left <= place[0] <= self.right and self.bottom <= place[1] <= self.top

    @property
    def area(self) -> float:
        """Width times height."""
        return (self.right - self.left) * (self.top - self.bottom)


def around(place: Place, width: float, height: float, gap: float) -> Iterator[Box]:
    """Propose boxes around a point, the nearest and most usual ones first.

    Args:
        place: The point.
        width: Width of the box.
        height: Height of the box.
        gap: The least distance from the point.

    Yields:
        Boxes in eight directions, at growing distances.
    """
    x, y = place
    for distance in (gap, 3 * gap, 6 * gap, 10 * gap):
        beside, over = distance + width / 2, distance + height / 2
        for across, up in [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)]:
            yield _centred(x + across * beside, y + up * over, width, height)


def along(start: Place, end: Place, width: float, height: float, gap: float) -> Iterator[Box]:
    """Propose boxes on either side of a line, those near its end first.

    Args:
        start: One end of the line, which is level or upright.
        end: The other, where the label is wanted.
        width: Width of the box.
        height: Height of the box.
        gap: The distance from the line.

    Yields:
        Boxes beside the line.
    """
    level = start[1] == end[1]
    length = end[0] - start[0] if level else end[1] - start[1]
    kept = (width if level else height) / 2 + gap
    steps = 24
    for step in range(steps + 1):
        moved = kept + (length - 2 * kept) * step / steps
        for side in (1, -1):
            if level:
                yield _centred(end[0] - moved, end[1] + side * (gap + height / 2), width, height)
            else:
                yield _centred(end[0] + side * (gap + width / 2), end[1] - moved, width, height)


def choose(candidates: Iterable[Box], taken: Sequence[Box], dots: Sequence[Place], inside: Box) -> Box:
    """Choose the first box that covers nothing, or else the one that covers least.

    Args:
        candidates: The boxes, best first; at least one.
        taken: What must not be covered.
        dots: Places that should not be covered, such as those on a line.
        inside: What the box should not leave.

    Returns:
        The chosen box.
    """

    def cost(box: Box) -> float:
        outside = box.area - box.shared_area(inside)
        covered = sum(box.shared_area(other) for other in taken)
        # A label on a line can be read, thanks to its halo; one on a label cannot, and one cut off is gone.
        return (4 * outside + 2 * covered) / box.area + sum(box.holds(dot) for dot in dots) / 50

    best, least = None, float("inf")
    for box in candidates:
        price = cost(box)
        if price < least:
            best, least = box, price
        if least < _FREE:
            break
    if best is None:
        raise AssertionError("no candidate was given")
    return best


# Rounding, not overlap.
_FREE = 1e-9


def _centred(x: float, y: float, width: float, height: float) -> Box:
    return Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)
