"""An interpreter for pickles that imports and calls nothing and bounds the number of steps.

``torch.load`` in its safe mode still calls allowed functions with any arguments (``bytearray(3_000_000_000)``) and
hashes tuples nested so deeply that it takes for ever.
"""

import pickletools
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

MAX_STEPS = 400_000  # a graph takes some hundreds, plus two for every string in a list
MAX_DEPTH = 16  # of nested lists


@dataclass(frozen=True)
class Global:
    """The name of a global in a pickle, which is never imported."""

    name: str


@dataclass(eq=False)
class Instance:
    """Stands for an object: the name of its class, and its state."""

    class_name: str
    state: dict[Any, Any] = field(default_factory=dict)


class _Mark:
    """Marks on the stack where the items of a tuple, list or dict begin."""


def _is_edge_type(key: Any) -> bool:
    """Whether this names an edge type: source, relation and target."""
    return isinstance(key, tuple) and len(key) == 3 and all(isinstance(name, str) for name in key)


class Interpreter(ABC):
    """Knows the steps of protocol 2 that ``torch.save`` uses; any other step is a ``ValueError``."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    @abstractmethod
    def find_global(self, name: str) -> Global:
        """The global of this name; a ``ValueError`` if it is not allowed."""

    @abstractmethod
    def create(self, class_name: str) -> Instance:
        """An empty object of this class; a ``ValueError`` if it is not allowed."""

    @abstractmethod
    def call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """The value to use as the result of a call; a ``ValueError`` if it is not allowed."""

    @abstractmethod
    def persistent_load(self, *key: Any) -> Any:
        """The object stored outside the pickle under this key."""

    def run(self, content: bytes) -> Any:
        """The value of a pickle."""
        argument: Any
        for number, (code, argument, _) in enumerate(pickletools.genops(content)):
            if number > MAX_STEPS:
                raise ValueError(f"it has more than {MAX_STEPS} steps: save long lists in another file")
            step = _STEPS.get(code.name)
            if step is None:
                raise ValueError(f"it has the step {code.name}")
            step(self, argument)
        (value,) = self.stack
        return value

    def _push(self, value: Any) -> None:
        self.stack.append(value)

    def _put(self, index: int) -> None:
        self.memo[index] = self.stack[-1]

    def _get(self, index: int) -> None:
        self.stack.append(self.memo[index])

    def _pop(self, count: int) -> list[Any]:
        if len(self.stack) < count:
            raise ValueError("a step lacks its values")
        values = self.stack[-count:]
        del self.stack[-count:]
        return values

    def _pop_marked(self) -> list[Any]:
        """Removes the last mark and returns the values above it."""
        position = len(self.stack) - 1
        while position >= 0 and not isinstance(self.stack[position], _Mark):
            position -= 1
        if position < 0:
            raise ValueError("a step lacks its mark")
        values = self.stack[position + 1 :]
        del self.stack[position:]
        return values

    def _top(self, kind: type) -> Any:
        if not self.stack or not isinstance(self.stack[-1], kind):
            raise ValueError(f"a step expects {kind.__name__}")
        return self.stack[-1]

    def _extend(self, values: list[Any]) -> None:
        self._top(list).extend(values)

    def _update(self, values: list[Any]) -> None:
        target = self._top(dict)
        for key, value in zip(values[::2], values[1::2], strict=True):
            if not isinstance(key, str | int | Enum) and not _is_edge_type(key):  # nested tuples may take for ever
                raise ValueError(f"a key is a {type(key).__name__}")
            target[key] = value

    def _new(self, _: Any) -> None:
        name, arguments = self._pop(2)
        if not isinstance(name, Global) or arguments != ():
            raise ValueError("an object is created without a class, or with arguments")
        self.stack.append(self.create(name.name))

    def _build(self, _: Any) -> None:
        (state,) = self._pop(1)
        if not isinstance(state, dict):
            raise ValueError("the state of an object is no dict")
        self._top(Instance).state = state

    def _call(self, _: Any) -> None:
        name, arguments = self._pop(2)
        if not isinstance(name, Global) or not isinstance(arguments, tuple):
            raise ValueError("it calls something without a name")
        self.stack.append(self.call(name.name, arguments))

    def _load(self, _: Any) -> None:
        (key,) = self._pop(1)
        if not isinstance(key, tuple):
            raise ValueError("a storage has no key")
        self.stack.append(self.persistent_load(*key))


_VALUES = ("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINSTRING")
_STEPS: dict[str, Callable[[Interpreter, Any], None]] = {
    **dict.fromkeys(_VALUES, Interpreter._push),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), Interpreter._put),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), Interpreter._get),
    **dict.fromkeys(("PROTO", "STOP"), lambda interpreter, _: None),
    "NONE": lambda interpreter, _: interpreter._push(None),
    "NEWTRUE": lambda interpreter, _: interpreter._push(True),
    "NEWFALSE": lambda interpreter, _: interpreter._push(False),
    "EMPTY_TUPLE": lambda interpreter, _: interpreter._push(()),
    "EMPTY_LIST": lambda interpreter, _: interpreter._push([]),
    "EMPTY_DICT": lambda interpreter, _: interpreter._push({}),
    "MARK": lambda interpreter, _: interpreter._push(_Mark()),
    "GLOBAL": lambda interpreter, name: interpreter._push(interpreter.find_global(name.replace(" ", "."))),
    "TUPLE": lambda interpreter, _: interpreter._push(tuple(interpreter._pop_marked())),
    "TUPLE1": lambda interpreter, _: interpreter._push(tuple(interpreter._pop(1))),
    "TUPLE2": lambda interpreter, _: interpreter._push(tuple(interpreter._pop(2))),
    "TUPLE3": lambda interpreter, _: interpreter._push(tuple(interpreter._pop(3))),
    "APPEND": lambda interpreter, _: interpreter._extend(interpreter._pop(1)),
    "APPENDS": lambda interpreter, _: interpreter._extend(interpreter._pop_marked()),
    "SETITEM": lambda interpreter, _: interpreter._update(interpreter._pop(2)),
    "SETITEMS": lambda interpreter, _: interpreter._update(interpreter._pop_marked()),
    "NEWOBJ": Interpreter._new,
    "BUILD": Interpreter._build,
    "REDUCE": Interpreter._call,
    "BINPERSID": Interpreter._load,
}


def check_nesting(value: Any) -> None:
    """Refuses lists that contain themselves or each other many times over: walking through them would never end."""
    level = [value]
    seen = 0
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for part in level:
            if isinstance(part, Global | Instance):
                raise ValueError(f"a field holds {part.name if isinstance(part, Global) else part.class_name}")
            below += part.values() if isinstance(part, dict) else part if isinstance(part, list | tuple) else ()
            seen += 1
            if seen + len(below) > MAX_STEPS:
                raise ValueError("it nests the same lists many times over")
        level = below
    if level:
        raise ValueError(f"it has lists nested more than {MAX_DEPTH} deep")
