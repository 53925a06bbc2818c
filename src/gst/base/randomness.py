"""Random numbers of gst's own: generators of this thread, never torch's global one, which every thread shares.

Inside ``seeded(seed)`` whatever gst draws comes from generators of that seed, the same numbers that torch would give
after ``torch.manual_seed(seed)``. A neighbour that draws from torch's generator neither disturbs them nor is disturbed.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class _Generators:
    """One generator for every device that is drawn on, all of one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.by_device: dict[str, torch.Generator] = {}

    def on(self, device: torch.device) -> torch.Generator:
        name = str(device)
        if name not in self.by_device:
            self.by_device[name] = torch.Generator(device).manual_seed(self.seed)
        return self.by_device[name]


class _Stack(threading.local):
    """The generators in force in this thread, the innermost last."""

    def __init__(self) -> None:
        self.generators: list[_Generators] = []


_STACK = _Stack()
_CPU = torch.device("cpu")


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, this thread draws numbers of one seed."""
    _STACK.generators.append(_Generators(seed))
    try:
        yield
    finally:
        _STACK.generators.pop()


def generator(device: torch.device = _CPU) -> torch.Generator | None:
    """The generator to draw from on a device; None, which is torch's own, outside of :func:`seeded`."""
    return _STACK.generators[-1].on(device) if _STACK.generators else None


def reseed(seed: int) -> None:
    """From here on the numbers in force are those of another seed."""
    if _STACK.generators:
        _STACK.generators[-1] = _Generators(seed)


def random_state() -> dict[str, Tensor]:
    """The state of the generators in force, by device."""
    known = _STACK.generators[-1].by_device if _STACK.generators else {}
    return {name: found.get_state() for name, found in known.items()}


def restore_random(states: dict[str, Tensor]) -> None:
    """Puts such a state back."""
    for name, state in states.items():
        _STACK.generators[-1].on(torch.device(name)).set_state(state.cpu())


@contextmanager
def own_numbers() -> Iterator[None]:
    """Inside, code that is not ours, a user's model say, draws from :func:`generator` as well."""
    with _Redirected() if _STACK.generators else nullcontext():
        yield


class _Redirected(TorchDispatchMode):
    """Gives every random operation of torch in this thread the generator in force."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags or kwargs.get("generator") is not None:
            return func(*args, **kwargs)
        if func in _WITHOUT_GENERATOR:
            return _WITHOUT_GENERATOR[func](*args, **kwargs)
        drawing = _GENERATOR_FORM.get(func._overloadname, func._overloadname)
        if drawing != func._overloadname and drawing in func.overloadpacket.overloads():
            func = getattr(func.overloadpacket, drawing)
        if any(argument.name == "generator" for argument in func._schema.arguments):
            kwargs = {**kwargs, "generator": generator(_device(args, kwargs))}
        return func(*args, **kwargs)


_GENERATOR_FORM = {"default": "generator", "low": "low_generator"}  # of torch.rand, randint and their like


def _device(args: Any, kwargs: Any) -> torch.device:
    """Where an operation draws: on the device it is told, or that of its first tensor."""
    if kwargs.get("device") is not None:
        return torch.device(kwargs["device"])
    return next((value.device for value in args if isinstance(value, Tensor)), _CPU)


def _rand_like(like: Tensor, **_: Any) -> Tensor:
    return torch.empty_like(like).uniform_(generator=generator(like.device))


def _randn_like(like: Tensor, **_: Any) -> Tensor:
    return torch.empty_like(like).normal_(generator=generator(like.device))


def _native_dropout(x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    if train is False or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    kept = torch.empty_like(x).bernoulli_(1 - p, generator=generator(x.device)).bool()
    return x * kept / (1 - p), kept


_WITHOUT_GENERATOR: dict[Any, Callable[..., Any]] = {
    torch.ops.aten.rand_like.default: _rand_like,
    torch.ops.aten.randn_like.default: _randn_like,
    torch.ops.aten.native_dropout.default: _native_dropout,
}
