"""Sorts as Go's `sort.Slice` does, down to where it leaves elements that compare equal.

That sort is not stable, but it is deterministic: pattern-defeating quicksort (Orson Peters, 2021) with Go's
choice of constants and pseudo-random numbers. Bundles list the same image under several names, and opm sorts
them by image, so the order of the names in its output follows from the steps below and from nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Item = TypeVar("Item")

_INSERTION = 12  # up to this length, insertion sort: stable
_NINTHER = 50  # from this length, the pivot is a median of medians, and sorted runs are mended in place
_MENDS = 5


def sort(items: Iterable[Item], key: Callable[[Item], Any]) -> list[Item]:
    """The items by their keys, equal ones where Go would leave them."""
    given = list(items)
    keys = [key(item) for item in given]
    in_order = sorted(keys)
    if len(given) <= _INSERTION or keys == in_order or len(set(keys)) == len(keys):
        return sorted(given, key=key)  # whatever is stable is right
    sorting = _Sorting(keys)
    sorting.sort(0, len(keys), len(keys).bit_length())
    return [given[index] for index in sorting.order]


class _Sorting:
    """Keys being sorted, and the order of the items that follows."""

    def __init__(self, keys: list[Any]) -> None:
        self.keys = keys
        self.order = list(range(len(keys)))

    def swap(self, i: int, j: int) -> None:
        self.keys[i], self.keys[j] = self.keys[j], self.keys[i]
        self.order[i], self.order[j] = self.order[j], self.order[i]

    def sort(self, start: int, end: int, bad_choices_left: int) -> None:
        balanced = partitioned = True
        while end - start > _INSERTION:
            length = end - start
            if bad_choices_left == 0:
                self._heap_sort(start, end)
                return
            if not balanced:
                self._break_pattern(start, length)
                bad_choices_left -= 1
            pivot, rising = self._pivot(start, end)
            if balanced and partitioned and rising and self._mend(start, end):
                return
            if start > 0 and not self.keys[start - 1] < self.keys[pivot]:
                start = self._gather_equal(start, end, pivot)
                continue
            middle, partitioned = self._partition(start, end, pivot)
            left, right = middle - start, end - middle
            balanced = min(left, right) >= length // 8
            if left < right:
                self.sort(start, middle, bad_choices_left)
                start = middle + 1
            else:
                self.sort(middle + 1, end, bad_choices_left)
                end = middle
        self._insertion_sort(start, end)

    def _insertion_sort(self, start: int, end: int) -> None:
        for index in range(start + 1, end):
            self._sink(index, start)

    def _sink(self, index: int, floor: int) -> None:
        while index > floor and self.keys[index] < self.keys[index - 1]:
            self.swap(index, index - 1)
            index -= 1

    def _pivot(self, start: int, end: int) -> tuple[int, bool]:
        """Where the pivot is, and whether the keys look sorted; falling ones are turned round first."""
        length = end - start
        swaps = 0

        def median(a: int, b: int, c: int) -> int:
            nonlocal swaps
            if self.keys[b] < self.keys[a]:
                a, b, swaps = b, a, swaps + 1
            if self.keys[c] < self.keys[b]:
                b, c, swaps = c, b, swaps + 1
            if self.keys[b] < self.keys[a]:
                a, b, swaps = b, a, swaps + 1
            return b

        quarters = [start + length // 4 * part for part in (1, 2, 3)]
        if length >= _NINTHER:
            quarters = [median(at - 1, at, at + 1) for at in quarters]
        pivot = median(*quarters)
        if swaps == 4 * 3:  # every comparison of a ninther found the wrong order
            self.keys[start:end] = self.keys[start:end][::-1]
            self.order[start:end] = self.order[start:end][::-1]
            return (end - 1) - (pivot - start), True
        return pivot, swaps == 0

    def _mend(self, start: int, end: int) -> bool:
        """Tries to finish keys that are nearly sorted; a few misplaced ones are moved if there are many."""
        index = start + 1
        for _ in range(_MENDS):
            while index < end and not self.keys[index] < self.keys[index - 1]:
                index += 1
            if index == end:
                return True
            if end - start < _NINTHER:
                return False
            self.swap(index, index - 1)
            if index - start >= 2:
                self._sink(index - 1, 0)
            after = index + 1
            while after < end and self.keys[after] < self.keys[after - 1]:
                self.swap(after, after - 1)
                after += 1
        return False

    def _gather_equal(self, start: int, end: int, pivot: int) -> int:
        """Moves what equals the pivot to the front, for nothing here is lower; where the rest starts."""
        self.swap(start, pivot)
        low, high = start + 1, end - 1
        key = self.keys[start]
        while True:
            while low <= high and not key < self.keys[low]:
                low += 1
            while low <= high and key < self.keys[high]:
                high -= 1
            if low > high:
                return low
            self.swap(low, high)
            low, high = low + 1, high - 1

    def _partition(self, start: int, end: int, pivot: int) -> tuple[int, bool]:
        """Moves what is lower than the pivot before it: where it is then, and whether nothing had to move."""
        self.swap(start, pivot)
        low, high = start + 1, end - 1
        key = self.keys[start]
        untouched = True
        while True:
            while low <= high and self.keys[low] < key:
                low += 1
            while low <= high and not self.keys[high] < key:
                high -= 1
            if low > high:
                self.swap(high, start)
                return high, untouched
            self.swap(low, high)
            untouched = False
            low, high = low + 1, high - 1

    def _break_pattern(self, start: int, length: int) -> None:
        """Exchanges three keys in the middle with others, chosen by xorshift from the length."""
        state = length
        middle = start + length // 4 * 2
        for index in (middle - 1, middle, middle + 1):
            state ^= state << 13 & 0xFFFFFFFFFFFFFFFF
            state ^= state >> 7
            state ^= state << 17 & 0xFFFFFFFFFFFFFFFF
            other = state & ((1 << length.bit_length()) - 1)
            self.swap(index, start + (other - length if other >= length else other))

    def _heap_sort(self, start: int, end: int) -> None:
        length = end - start
        for root in range((length - 1) // 2, -1, -1):
            self._sift_down(root, length, start)
        for last in range(length - 1, -1, -1):
            self.swap(start, start + last)
            self._sift_down(0, last, start)

    def _sift_down(self, root: int, length: int, start: int) -> None:
        while (child := 2 * root + 1) < length:
            if child + 1 < length and self.keys[start + child] < self.keys[start + child + 1]:
                child += 1
            if not self.keys[start + root] < self.keys[start + child]:
                return
            self.swap(start + root, start + child)
            root = child
