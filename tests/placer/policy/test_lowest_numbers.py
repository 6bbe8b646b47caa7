"""The lowest NIC number of a class, against a sorted list."""

from __future__ import annotations

import random

import pytest

from placer.policy.class_slots import LowestNumbers


@pytest.mark.long
def test_the_lowest_number_is_found_whatever_came_and_left() -> None:
    """Most numbers leave again, so that the heap is renewed several times."""
    slots: dict[int, int] = {}
    numbers, draw = LowestNumbers(3, slots), random.Random(0)
    for _ in range(20_000):
        number = draw.randrange(2_000)
        if slots.get(number) == 3:
            slots[number] = draw.choice([0, 1])
            numbers.size -= 1
        elif draw.random() < 0.5 or len(slots) < 10:
            slots[number] = 3
            numbers.add(number)
        here = [number for number, slot in slots.items() if slot == 3]
        assert numbers.lowest() == min(here, default=None)
        assert numbers.size == len(here)


def test_numbers_of_nics_that_left_do_not_pile_up() -> None:
    """Of ten thousand NICs that pass through a class one is left."""
    slots = {0: 3}
    numbers = LowestNumbers(3, slots)
    numbers.add(0)
    for number in range(1, 10_000):
        slots[number] = 3
        numbers.add(number)
        slots[number] = 0
        numbers.size -= 1
    assert numbers.lowest() == 0
    assert len(numbers) < 1_000
