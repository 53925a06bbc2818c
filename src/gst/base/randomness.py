"""Per-thread random generators, used instead of torch's global one, which all threads share.

Inside ``seeded(seed)`` everything gst draws comes from generators of that seed: the same numbers torch would give after
``torch.manual_seed(seed)``. Other code that draws from torch's generator neither disturbs them nor is disturbed.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class _Generators:
    """One generator per device in use, all with one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.by_device: dict[str, torch.Generator] = {}

    def on(self, device: torch.device) -> torch.Generator:
        name = str(device)
        if name not in self.by_device:
            self.by_device[name] = torch.Generator(device).manual_seed(self.seed)
        return self.by_device[name]


class _Stack(threading.local):
    """The active generators of this thread, the innermost last."""

    def __init__(self) -> None:
        self.generators: list[_Generators] = []


_STACK = _Stack()
_CPU = torch.device("cpu")


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, this thread draws from generators with this seed."""
    _STACK.generators.append(_Generators(seed))
    try:
        yield
    finally:
        _STACK.generators.pop()


def generator(device: torch.device = _CPU) -> torch.Generator | None:
    """The generator to draw from on a device; outside of :func:`seeded` None, which means torch's global one."""
    return _STACK.generators[-1].on(device) if _STACK.generators else None


def reseed(seed: int) -> None:
    """Replaces the active generators by new ones with another seed."""
    if _STACK.generators:
        _STACK.generators[-1] = _Generators(seed)


def random_state() -> dict[str, Tensor]:
    """The state of the active generators, by device."""
    by_device = _STACK.generators[-1].by_device if _STACK.generators else {}
    return {name: rng.get_state() for name, rng in by_device.items()}


def restore_random(states: dict[str, Tensor]) -> None:
    """Restores what :func:`random_state` returned."""
    for name, state in states.items():
        _STACK.generators[-1].on(torch.device(name)).set_state(state.cpu())


@contextmanager
def redirect_torch_random() -> Iterator[None]:
    """Inside, foreign code such as a user's model draws from :func:`generator` as well."""
    with _Redirected() if _STACK.generators else nullcontext():
        yield


class _Redirected(TorchDispatchMode):
    """Passes the active generator to every random torch operation of this thread."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags or kwargs.get("generator") is not None:
            return func(*args, **kwargs)
        if func in _WITHOUT_GENERATOR:
            return _WITHOUT_GENERATOR[func](*args, **kwargs)
        overload = _GENERATOR_OVERLOAD.get(func._overloadname, func._overloadname)
        if overload != func._overloadname and overload in func.overloadpacket.overloads():
            func = getattr(func.overloadpacket, overload)
        if any(argument.name == "generator" for argument in func._schema.arguments):
            kwargs = {**kwargs, "generator": generator(_device(args, kwargs))}
        return func(*args, **kwargs)


_GENERATOR_OVERLOAD = {"default": "generator", "low": "low_generator"}  # of torch.rand, torch.randint and the like


def _device(args: Any, kwargs: Any) -> torch.device:
    """The device an operation draws on: its ``device`` argument, else that of its first tensor."""
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
    keep_mask = torch.empty_like(x).bernoulli_(1 - p, generator=generator(x.device)).bool()
    return x * keep_mask / (1 - p), keep_mask


_WITHOUT_GENERATOR: dict[Any, Callable[..., Any]] = {
    torch.ops.aten.rand_like.default: _rand_like,
    torch.ops.aten.randn_like.default: _randn_like,
    torch.ops.aten.native_dropout.default: _native_dropout,
}
