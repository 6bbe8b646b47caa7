"""The registry: strategies, predictors, profiling methods, testbeds and their like, by name. A room is a package whose
files register what they define. A file that is put into the room is found without another edit; another package adds
its own through an entry point of the room's group."""

import pkgutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Generic, TypeVar

from profiles.faults import InputError, suggestion

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """What is registered, by name: the room's own in alphabetical order, then those of other packages.

    Looking up one name imports the file of that name alone (`contention_aware.py` for `contention-aware`); listing
    imports all of them. `noun`: what one of them is, for messages: `strategy`. `room`: the package whose files register
    what they define. `group`: the entry-point group of other packages. `option`: the command-line option that names
    one, for messages: `--strategy`. `first`: names that are listed before all others, in this order."""

    def __init__(self, noun: str, room: str, group: str, option: str, *, first: Sequence[str] = ()) -> None:
        self.noun = noun
        self.room = room
        self.group = group
        self.option = option
        self.first = tuple(first)
        self._own: dict[str, T] = {}
        self._foreign: dict[str, T] = {}
        self._complete = False

    def register(self, name: str) -> Callable[[T], T]:
        """A decorator that makes something known under `name`. Raises `ValueError` when another has that name."""

        def decorate(thing: T) -> T:
            if name in self._own:
                raise ValueError(f"There are two {self.noun} definitions named '{name}'.")
            self._own[name] = thing
            return thing

        return decorate

    def find(self, name: str) -> T:
        """The one of that name. Raises `InputError` when there is none; the hint names the nearest, or all."""
        if name not in self:
            raise InputError.of(self.option, f"'{name}' is not a {self.noun}", hint=suggestion(name, self))
        return self[name]

    def file_names(self) -> list[str]:
        """The names of the room's files and of other packages' entry points, without importing any, for help texts.
        Only for a room in which every file registers one thing under the file's name."""
        files = pkgutil.iter_modules(import_module(self.room).__path__)
        own = sorted(module.name.replace("_", "-") for module in files)
        return list(dict.fromkeys([*own, *(point.name for point in entry_points(group=self.group))]))

    def __getitem__(self, name: str) -> T:
        if name not in self._own and not self._complete:
            # Import the file of the room that is named like `name`, if there is one.
            file = name.replace("-", "_")
            if file.isidentifier() and find_spec(f"{self.room}.{file}"):
                import_module(f"{self.room}.{file}")
        return self._own[name] if name in self._own else self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, T]:
        if not self._complete:
            self._complete = True  # first: a file of the room may look up what is registered so far
            for module in pkgutil.iter_modules(import_module(self.room).__path__):
                import_module(f"{self.room}.{module.name}")
            for point in entry_points(group=self.group):
                self._add_foreign(point.name, point.load)
        order = [*(name for name in self.first if name in self._own), *sorted(self._own)]
        own = {name: self._own[name] for name in dict.fromkeys(order)}
        return own | {name: thing for name, thing in self._foreign.items() if name not in own}

    def _add_foreign(self, name: str, load: Callable[[], T]) -> None:
        """Add what another package provides. It never replaces ours, and what does not load is left out: both warn."""
        if name in self._own or name in self._foreign:
            warnings.warn(f"the {self.noun} '{name}' of another package is ignored: that name is taken", stacklevel=2)
            return
        try:
            thing = load()
        except Exception as error:  # whatever other people's code raises
            warnings.warn(f"the {self.noun} '{name}' of another package does not load: {error}", stacklevel=2)
            return
        if name not in self._own:  # loading it may have registered it
            self._foreign[name] = thing
