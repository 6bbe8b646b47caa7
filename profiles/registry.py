"""The registry: strategies, predictors, profiling methods, testbeds and their like, by name.

A room is a package whose files register what they define. A file that is put into the room is found without another
edit; another package adds its own through an entry point of the room's group.
"""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from profiles.faults import InputError

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """What is registered, by name: the room's own in alphabetical order of their files, then those of other packages.

    Parameters
    ----------
    noun
        What one of them is, for messages: `strategy`.
    room
        The package in which every file is loaded on first use.
    group
        The entry-point group of other packages.
    option
        The command-line option that names one, for messages: `--strategy`.
    """

    def __init__(self, noun: str, room: str, group: str, option: str) -> None:
        self.noun = noun
        self.room = room
        self.group = group
        self.option = option
        self._known: dict[str, T] = {}
        self._loaded = False

    def register(self, name: str) -> Callable[[T], T]:
        """A decorator that makes something known under `name`.

        Raises
        ------
        ValueError
            When another has that name.
        """

        def decorate(thing: T) -> T:
            if name in self._known:
                raise ValueError(f"There are two {self.noun} definitions named '{name}'.")
            self._known[name] = thing
            return thing

        return decorate

    def find(self, name: str) -> T:
        """The one of that name.

        Raises
        ------
        InputError
            When there is none; the hint names the nearest, or all.
        """
        if name not in self:
            near = get_close_matches(name.lower(), list(self), n=1)
            hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(self)}"
            raise InputError.of(self.option, f"'{name}' is not a {self.noun}", hint=hint)
        return self[name]

    def __getitem__(self, name: str) -> T:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, T]:
        if not self._loaded:
            self._loaded = True  # first: a file of the room may ask for what is registered so far
            for module in pkgutil.iter_modules(import_module(self.room).__path__):
                import_module(f"{self.room}.{module.name}")
            for point in entry_points(group=self.group):
                self._add_foreign(point.name, point.load)
        return self._known

    def _add_foreign(self, name: str, load: Callable[[], T]) -> None:
        """Add what another package provides. It never replaces ours, and what does not load is left out: both warn."""
        if name in self._known:
            warnings.warn(f"the {self.noun} '{name}' of another package is ignored: that name is taken", stacklevel=2)
            return
        try:
            thing = load()
        except Exception as error:  # whatever other people's code raises
            warnings.warn(f"the {self.noun} '{name}' of another package does not load: {error}", stacklevel=2)
            return
        self._known.setdefault(name, thing)
