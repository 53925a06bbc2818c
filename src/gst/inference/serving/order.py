"""Orders of edges of which a prefix is kept, while edges come and go: each step costs a search, not a sort."""

from bisect import bisect_left
from typing import Any


class RankedPrefix:
    """Edges that are known beforehand, by their ranks from ``begin`` to ``end``; those present up to ``last`` are kept.

    ``present`` has one byte per rank and may be shared with other parts of the order.
    """

    def __init__(self, present: bytearray, begin: int, end: int) -> None:
        self.present, self.begin, self.end = present, begin, end
        self.total = present.count(1, begin, end)
        self.last, self.kept = begin - 1, 0

    def insert(self, rank: int) -> bool:
        """An edge comes; whether it lies among those kept."""
        self.present[rank] = 1
        self.total += 1
        self.kept += rank <= self.last
        return rank <= self.last

    def remove(self, rank: int) -> bool:
        """An edge goes; whether it was kept."""
        self.present[rank] = 0
        self.total -= 1
        self.kept -= rank <= self.last
        return rank <= self.last

    def grow(self) -> int:
        """The next edge that is kept, too."""
        self.last = self.present.find(1, self.last + 1, self.end)
        self.kept += 1
        return self.last

    def shrink(self) -> int:
        """The last edge that was kept, which no longer is."""
        dropped = self.present.rfind(1, self.begin, self.last + 1)
        self.last = dropped - 1
        self.kept -= 1
        return dropped


class SortedPrefix:
    """Edges that nobody knew beforehand, as sortable keys; the first ``kept`` are kept."""

    def __init__(self) -> None:
        self.keys: list[Any] = []
        self.kept = 0

    @property
    def total(self) -> int:
        return len(self.keys)

    def insert(self, key: Any) -> bool:
        """An edge comes; whether it lies among those kept."""
        position = bisect_left(self.keys, key)
        self.keys.insert(position, key)
        inside = position < self.kept
        self.kept += inside
        return inside

    def remove(self, key: Any) -> bool:
        """An edge goes; whether it was kept."""
        position = bisect_left(self.keys, key)
        del self.keys[position]
        inside = position < self.kept
        self.kept -= inside
        return inside

    def grow(self) -> Any:
        """The next edge that is kept, too."""
        self.kept += 1
        return self.keys[self.kept - 1]

    def shrink(self) -> Any:
        """The last edge that was kept, which no longer is."""
        self.kept -= 1
        return self.keys[self.kept]


def shares(num_kept: int, *totals: int) -> list[int]:
    """How many of each part of an order are kept, the first parts first.

    >>> shares(5, 3, 4, 9), shares(2, 3, 4, 9)
    ([3, 2, 0], [2, 0, 0])
    """
    counts = []
    for total in totals:
        counts.append(min(total, num_kept))
        num_kept -= counts[-1]
    return counts
