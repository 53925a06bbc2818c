"""A machine that runs the steps of a pickle but calls nothing: names stay names, and the number of steps is bounded.

``torch.load`` in its safe mode still calls what a file names with the numbers it gives (``bytearray(3_000_000_000)``),
and hashes tuples that hold each other many times over.
"""

import pickletools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

MOST_STEPS = 400_000  # a graph takes some hundreds, and two for every text in a list
MOST_DEPTH = 16  # of lists in lists


@dataclass(frozen=True)
class Name:
    """A global that a pickle names, not looked up."""

    text: str


@dataclass(eq=False)
class Thing:
    """An object: its class and what it is to hold."""

    kind: str
    state: dict[Any, Any] = field(default_factory=dict)


class _Mark:
    """Where the items of a tuple, list or dict begin."""


class Machine(ABC):
    """Knows the steps of protocol 2 that ``torch.save`` uses; whatever else a pickle holds is a ``ValueError``."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    @abstractmethod
    def named(self, name: str) -> Name:
        """The global of this name, if it is known."""

    @abstractmethod
    def made(self, name: str) -> Thing:
        """An empty object of the class of this name."""

    @abstractmethod
    def called(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """What stands for the result of a call."""

    @abstractmethod
    def stored(self, *words: Any) -> Any:
        """What lies outside of the pickle under these words."""

    def run(self, content: bytes) -> Any:
        """The value that a pickle describes."""
        argument: Any
        for number, (code, argument, _) in enumerate(pickletools.genops(content)):
            if number > MOST_STEPS:
                raise ValueError(f"it has more than {MOST_STEPS} steps: keep long lists in a file of their own")
            step = _STEPS.get(code.name)
            if step is None:
                raise ValueError(f"it has the step {code.name}")
            step(self, argument)
        (value,) = self.stack
        return value

    def _push(self, value: Any) -> None:
        self.stack.append(value)

    def _put(self, place: int) -> None:
        self.memo[place] = self.stack[-1]

    def _get(self, place: int) -> None:
        self.stack.append(self.memo[place])

    def _last(self, count: int) -> list[Any]:
        if len(self.stack) < count:
            raise ValueError("a step lacks its values")
        values = self.stack[-count:]
        del self.stack[-count:]
        return values

    def _marked(self) -> list[Any]:
        """The values since the last mark, which goes."""
        place = len(self.stack) - 1
        while place >= 0 and not isinstance(self.stack[place], _Mark):
            place -= 1
        if place < 0:
            raise ValueError("a step lacks its mark")
        values = self.stack[place + 1 :]
        del self.stack[place:]
        return values

    def _top(self, kind: type) -> Any:
        if not self.stack or not isinstance(self.stack[-1], kind):
            raise ValueError(f"a step needs a {kind.__name__}")
        return self.stack[-1]

    def _extend(self, values: list[Any]) -> None:
        self._top(list).extend(values)

    def _update(self, values: list[Any]) -> None:
        target = self._top(dict)
        for key, value in zip(values[::2], values[1::2], strict=True):
            if not isinstance(key, str | int | Enum):  # the hash of tuples in tuples may take for ever
                raise ValueError(f"a key is a {type(key).__name__}")
            target[key] = value

    def _new(self, _: Any) -> None:
        name, arguments = self._last(2)
        if not isinstance(name, Name) or arguments != ():
            raise ValueError("an object is made of no class, or of arguments")
        self.stack.append(self.made(name.text))

    def _build(self, _: Any) -> None:
        (state,) = self._last(1)
        if not isinstance(state, dict):
            raise ValueError("the state of an object is no dict")
        self._top(Thing).state = state

    def _call(self, _: Any) -> None:
        name, arguments = self._last(2)
        if not isinstance(name, Name) or not isinstance(arguments, tuple):
            raise ValueError("something is called that has no name")
        self.stack.append(self.called(name.text, arguments))

    def _load(self, _: Any) -> None:
        (words,) = self._last(1)
        if not isinstance(words, tuple):
            raise ValueError("a storage has no name")
        self.stack.append(self.stored(*words))


_VALUES = ("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINSTRING")
_STEPS: dict[str, Callable[[Machine, Any], None]] = {
    **dict.fromkeys(_VALUES, Machine._push),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), Machine._put),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), Machine._get),
    **dict.fromkeys(("PROTO", "STOP"), lambda machine, _: None),
    "NONE": lambda machine, _: machine._push(None),
    "NEWTRUE": lambda machine, _: machine._push(True),
    "NEWFALSE": lambda machine, _: machine._push(False),
    "EMPTY_TUPLE": lambda machine, _: machine._push(()),
    "EMPTY_LIST": lambda machine, _: machine._push([]),
    "EMPTY_DICT": lambda machine, _: machine._push({}),
    "MARK": lambda machine, _: machine._push(_Mark()),
    "GLOBAL": lambda machine, words: machine._push(machine.named(words.replace(" ", "."))),
    "TUPLE": lambda machine, _: machine._push(tuple(machine._marked())),
    "TUPLE1": lambda machine, _: machine._push(tuple(machine._last(1))),
    "TUPLE2": lambda machine, _: machine._push(tuple(machine._last(2))),
    "TUPLE3": lambda machine, _: machine._push(tuple(machine._last(3))),
    "APPEND": lambda machine, _: machine._extend(machine._last(1)),
    "APPENDS": lambda machine, _: machine._extend(machine._marked()),
    "SETITEM": lambda machine, _: machine._update(machine._last(2)),
    "SETITEMS": lambda machine, _: machine._update(machine._marked()),
    "NEWOBJ": Machine._new,
    "BUILD": Machine._build,
    "REDUCE": Machine._call,
    "BINPERSID": Machine._load,
}


def check_nesting(value: Any) -> None:
    """Lists that hold themselves, or each other many times over, would keep busy whoever walks through them."""
    level, seen = [value], 0
    for _ in range(MOST_DEPTH):
        below: list[Any] = []
        for part in level:
            if isinstance(part, Name | Thing):
                raise ValueError(f"a field holds {part.text if isinstance(part, Name) else part.kind}")
            below += part.values() if isinstance(part, dict) else part if isinstance(part, list | tuple) else ()
            seen += 1
            if seen + len(below) > MOST_STEPS:
                raise ValueError("it repeats its lists over and over")
        level = below
    if level:
        raise ValueError(f"it has lists in lists, more than {MOST_DEPTH} deep")
