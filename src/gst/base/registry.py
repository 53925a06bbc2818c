"""Registries of named objects: a decorator registers them where they are defined, or another package's entry point."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from gst.base.errors import InputError
from gst.base.names import normalise_name, resolve_name

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Entries by name in the order of registration; those of other packages come last.

    Args:
        kind: what an entry is called in messages: "method", "backbone", "data set".
        group: the entry-point group for other packages, such as ``gst.methods``. An entry point names the object
            itself; loading it may also register it by the decorator.

    >>> shapes = Registry[type]("shape", "gst.shapes")
    >>> @shapes.register("round-one")
    ... class Circle: ...
    >>> list(shapes), shapes.resolve("Round_One"), shapes["round-one"].__name__
    (['round-one'], 'round-one', 'Circle')
    """

    def __init__(self, kind: str, group: str) -> None:
        self.kind = kind
        self.group = group
        self._entries: dict[str, T] = {}
        self._complete = False

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator that registers an object under a name."""

        def add(entry: T) -> T:
            taken = next((known for known in self._entries if normalise_name(known) == normalise_name(name)), None)
            if taken is not None and self._entries[taken] is not entry:
                raise InputError(f"a {self.kind} named '{taken}' is registered already: choose another name")
            self._entries[name] = entry
            return entry

        return add

    def resolve(self, name: str) -> str:
        """The registered spelling of a name, regardless of its case, dashes and underscores."""
        return resolve_name(self.kind, name, self)

    def __getitem__(self, name: str) -> T:
        return self._loaded()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded())

    def __len__(self) -> int:
        return len(self._loaded())

    def _loaded(self) -> dict[str, T]:
        """All entries; those of other packages are loaded on first use."""
        if not self._complete:
            self._complete = True  # set first: loading an entry point may use this registry
            for point in entry_points(group=self.group):
                try:
                    entry = point.load()
                    if entry not in self._entries.values():
                        self.register(point.name)(entry)
                except Exception as error:  # a broken package must not take gst down with it
                    message = f"{self.kind} '{point.name}' is left out: {point.value} cannot be loaded: {error}"
                    warnings.warn(message, stacklevel=2)
        return self._entries
