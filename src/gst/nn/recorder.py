"""Records what a model computes as a :class:`~gst.nn.tape.Tape`, while it runs on real features.

Every call of a torch function with a tracked tensor becomes a step; a convolution becomes the steps of its formula
(:mod:`gst.nn.convolutions`). Whatever has no step raises :class:`NotNativeError`: the model is then run as it is.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet
from gst.nn.tape import Diagonal, Norm, Score, Step, along_edges


class NotNativeError(InputError):
    """A model does something that no step describes."""


class Recorder(TorchFunctionMode):
    """Inside ``with recorder``, functions of torch on tracked tensors are recorded.

    Attributes:
        steps: what was recorded, one step per register.
        weighted: whether arcs count with the data's ``edge_weight``; None: no step along the edges has said so yet.
    """

    def __init__(self, graph: Data, edges: EdgeSet) -> None:
        super().__init__()
        self.graph, self.edges = graph, edges
        self.steps: list[Step] = []
        self.weighted: bool | None = None
        self._registers: dict[int, tuple[int, Tensor]] = {}  # by id; the tensor is kept, so that its id is not reused
        self._quiet = False
        self.track(graph.x, Step("input", width=graph.x.shape[1]))

    def track(self, tensor: Tensor, step: Step) -> Tensor:
        """Says that a tensor is the outcome of a new step."""
        self.steps.append(step)
        self._registers[id(tensor)] = len(self.steps) - 1, tensor
        return tensor

    def alias(self, tensor: Tensor, of: Tensor) -> Tensor:
        """Says that a tensor has the values of a tracked one."""
        self._registers[id(tensor)] = self.register(of), tensor
        return tensor

    def is_tracked(self, tensor: object) -> bool:
        return id(tensor) in self._registers

    def register(self, tensor: object) -> int:
        """The register of a tensor; a matrix of the data with a row per node becomes a constant one."""
        if id(tensor) in self._registers:
            return self._registers[id(tensor)][0]
        if isinstance(tensor, Tensor) and tensor.dim() == 2 and tensor.shape[0] == self.graph.num_nodes:
            self.track(tensor, Step("constant", (), tensor.shape[1], (tensor.detach(),)))
            return len(self.steps) - 1
        raise NotNativeError(f"reads {tuple(tensor.shape) if isinstance(tensor, Tensor) else type(tensor).__name__}")

    def width(self, tensor: Tensor) -> int:
        return self.steps[self.register(tensor)].width

    def use_weights(self, weighted: bool) -> None:
        """Says whether the next step along the edges counts arcs by ``edge_weight``; all must agree."""
        weighted = weighted and "edge_weight" in self.graph
        if self.weighted not in (None, weighted):
            raise NotNativeError("some of its layers read edge_weight and others do not")
        self.weighted = weighted

    def convolve(self, x: Tensor, norm: Norm, diagonal: Diagonal | None = None) -> Tensor:
        """Sums or means over the neighbours."""
        options: dict[str, Any] = {"norm": norm, "diagonal": diagonal or Diagonal()}
        sums = self._along(Step("sum", (self.register(x),), self.width(x), **options), [x])
        return (
            sums
            if norm == "sum"
            else self._along(Step("scale", (self.register(sums),), self.width(x), **options), [sums])
        )

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        heads: int,
        score: Score,
        *,
        loops: bool,
        slope: float = 0.0,
        scale: float = 1.0,
        vector: Tensor | None = None,
    ) -> Tensor:
        """Means over the neighbours, weighted by attention."""
        step = Step(
            "attend",
            tuple(self.register(x) for x in (query, key, value)),
            self.width(value),
            () if vector is None else (vector.detach(),),
            (slope, scale),
            diagonal=Diagonal("replace", 1.0) if loops else Diagonal(),
            heads=heads,
            score=score,
        )
        return self._along(step, [query, key, value])

    def _along(self, step: Step, sources: list[Tensor]) -> Tensor:
        self._quiet = True
        try:
            dense = [x.to_dense() if x.layout != torch.strided else x for x in sources]
            return self.track(along_edges(step, dense, self.edges), step)
        finally:
            self._quiet = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        inputs = [a for arg in (*args, *kwargs.values()) for a in (arg if isinstance(arg, list | tuple) else [arg])]
        if self._quiet or not any(self.is_tracked(a) for a in inputs):
            return func(*args, **kwargs)
        name = func.__name__
        if name in UNRELATED or (name in ("to", "type_as") and not self.is_tracked(args[0])):
            return func(*args, **kwargs)
        record, out = RECORDED.get(name), func(*args, **kwargs)
        if record is not None and isinstance(out, Tensor):
            record(self, out, *args, **kwargs)
        elif record is not None or _has_tensor(out) or name in ("__setitem__", "__set__"):
            raise NotNativeError(f"calls {name}")
        return out


def _has_tensor(out: object) -> bool:
    return isinstance(out, Tensor) or (isinstance(out, list | tuple) and any(isinstance(part, Tensor) for part in out))


def _linear(rec: Recorder, out: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> None:
    _product(rec, out, x, weight.t(), bias)


def _product(rec: Recorder, out: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> None:
    if rec.is_tracked(weight) or weight.dim() != 2 or not rec.is_tracked(x):
        raise NotNativeError("multiplies its features with each other")
    bias = weight.new_zeros(weight.shape[1]) if bias is None else bias
    rec.track(out, Step("linear", (rec.register(x),), weight.shape[1], (weight.detach(), bias.detach())))


def _addmm(
    rec: Recorder, out: Tensor, bias: Tensor, x: Tensor, weight: Tensor, *, beta: float = 1, alpha: float = 1
) -> None:
    if rec.is_tracked(bias):
        product = rec.track(x @ weight, Step("linear"))  # its tensor is needed for its identity only
        rec.steps.pop()
        _product(rec, product, x, alpha * weight)
        _sum(rec, out, product, bias, 1.0, float(beta))
    else:
        _product(rec, out, x, alpha * weight, beta * bias)


def _activate(name: str, default: float = 0.0) -> Callable[..., None]:
    def record(rec: Recorder, out: Tensor, x: Tensor, number: Any = default, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("approximate", "none") != "none" or kwargs.get("beta", 1) != 1:
            raise NotNativeError(f"calls {name} with other arguments than usual")
        number = kwargs.get("alpha", kwargs.get("negative_slope", number))
        number = default if isinstance(number, bool) else float(number)
        rec.track(out, Step("activate", (rec.register(x),), rec.width(x), (), (number,), name))

    return record


def _prelu(rec: Recorder, out: Tensor, x: Tensor, weight: Tensor) -> None:
    if weight.numel() != 1:
        raise NotNativeError("has a PReLU with a slope for every column")
    rec.track(out, Step("activate", (rec.register(x),), rec.width(x), (), (float(weight),), "leaky_relu"))


def _dropout(
    rec: Recorder, out: Tensor, x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> None:
    if training and p > 0:
        raise NotNativeError("drops features in evaluation mode")
    rec.alias(out, x)


def _batch_norm(
    rec: Recorder,
    out: Tensor,
    x: Tensor,
    mean: Tensor | None,
    variance: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> None:
    if training or mean is None or variance is None:
        raise NotNativeError("has a batch norm without stored statistics")
    factor = (variance.double() + eps).rsqrt()
    factor = (factor if weight is None else factor * weight).detach()
    shift = -mean * factor if bias is None else bias - mean * factor
    _affine(rec, out, x, factor.to(out.dtype), shift.detach().to(out.dtype))


def _layer_norm(
    rec: Recorder,
    out: Tensor,
    x: Tensor,
    shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> None:
    width = rec.width(x)
    if tuple(shape) != (width,):
        raise NotNativeError("has a layer norm over more than the columns of a node")
    gain = out.new_ones(width) if weight is None else weight.detach()
    shift = out.new_zeros(width) if bias is None else bias.detach()
    rec.track(out, Step("layer_norm", (rec.register(x),), width, (gain, shift), (eps,)))


def _affine(rec: Recorder, out: Tensor, x: Tensor, factor: Tensor, shift: Tensor) -> None:
    width = rec.width(x)
    factor, shift = (t.detach().to(out).reshape(-1).expand(width).clone() for t in (factor, shift))
    rec.track(out, Step("affine", (rec.register(x),), width, (factor, shift)))


def _sum(rec: Recorder, out: Tensor, x: Tensor, y: Tensor, alpha: float, beta: float) -> None:
    x, y = _broadcast(rec, x, y)
    rec.track(out, Step("add", (rec.register(x), rec.register(y)), rec.width(x), (), (alpha, beta)))


def _broadcast(rec: Recorder, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Two tensors of a row per node, a single column repeated."""
    widths = rec.width(x), rec.width(y)
    if widths[0] == widths[1]:
        return x, y
    if 1 not in widths:
        raise NotNativeError(f"combines {widths[0]} and {widths[1]} columns")
    narrow, width = (x, widths[1]) if widths[0] == 1 else (y, widths[0])
    ones, zeros = narrow.new_ones(1, width), narrow.new_zeros(width)
    wide = rec.track(narrow.expand(-1, width), Step("linear", (rec.register(narrow),), width, (ones, zeros)))
    return (wide, y) if widths[0] == 1 else (x, wide)


def _is_constant(rec: Recorder, value: object) -> bool:
    """Whether a value is the same for every node: a number, or one for each column."""
    if isinstance(value, int | float):
        return True
    return (
        isinstance(value, Tensor)
        and not rec.is_tracked(value)
        and (value.numel() == 1 or value.shape[:-1].numel() == 1)
    )


def _linear_combination(sign: float, *, swapped: bool = False) -> Callable[..., None]:
    def record(rec: Recorder, out: Tensor, x: Any, y: Any, *, alpha: float = 1) -> None:
        if swapped:
            x, y = y, x
        second = sign * alpha
        if _is_constant(rec, y):
            shift = second * torch.as_tensor(y, dtype=out.dtype)
            _affine(rec, out, x, torch.ones(1), shift)
        elif _is_constant(rec, x):
            _affine(rec, out, y, torch.tensor([second]), torch.as_tensor(x, dtype=out.dtype))
        else:
            _sum(rec, out, x, y, 1.0, second)

    return record


def _multiply(rec: Recorder, out: Tensor, x: Any, y: Any) -> None:
    if _is_constant(rec, x):
        x, y = y, x
    if _is_constant(rec, y):
        _affine(rec, out, x, torch.as_tensor(y, dtype=out.dtype), torch.zeros(1))
    else:
        x, y = _broadcast(rec, x, y)
        rec.track(out, Step("multiply", (rec.register(x), rec.register(y)), rec.width(x)))


def _divide(rec: Recorder, out: Tensor, x: Any, y: Any) -> None:
    if not _is_constant(rec, y):
        raise NotNativeError("divides by its features")
    _affine(rec, out, x, 1 / torch.as_tensor(y, dtype=out.dtype), torch.zeros(1))


def _maximum(rec: Recorder, out: Tensor, x: Tensor, y: Tensor) -> None:
    x, y = _broadcast(rec, x, y)
    rec.track(out, Step("maximum", (rec.register(x), rec.register(y)), rec.width(x)))


def _concatenate(rec: Recorder, out: Tensor, parts: Any, dim: int = 0) -> None:
    if dim not in (1, -1):
        raise NotNativeError("stacks nodes")
    left, width = rec.register(parts[0]), rec.width(parts[0])
    for part in parts[1:-1]:
        width += rec.width(part)
        right = rec.register(part)
        rec.steps.append(Step("concatenate", (left, right), width))
        left = len(rec.steps) - 1
    if len(parts) == 1:
        rec.alias(out, parts[0])
        return
    right = rec.register(parts[-1])
    rec.track(out, Step("concatenate", (left, right), width + rec.width(parts[-1])))


def _slice(rec: Recorder, out: Tensor, x: Tensor, index: Any) -> None:
    whole = slice(None)
    if not (
        isinstance(index, tuple) and len(index) == 2 and index[0] in (whole, Ellipsis) and isinstance(index[1], slice)
    ):
        raise NotNativeError("picks single nodes")
    start, stop, step = index[1].indices(rec.width(x))
    if step != 1:
        raise NotNativeError("picks single columns")
    rec.track(out, Step("slice", (rec.register(x),), stop - start, (), (float(start),)))


def _same(rec: Recorder, out: Tensor, x: Tensor, *_: Any, **__: Any) -> None:
    """Another view of the same rows."""
    rows = out.reshape(out.shape[0], -1) if out.dim() else out
    if out.dim() not in (1, 2) or tuple(rows.shape) != (x.shape[0], rec.width(x)) or out.dtype != x.dtype:
        raise NotNativeError("gives its features another shape")
    rec.alias(out, x)


def _log_softmax(rec: Recorder, out: Tensor, x: Tensor, dim: int | None = None, *_: Any, **__: Any) -> None:
    if dim not in (1, -1):
        raise NotNativeError("normalises over the nodes")
    rec.track(out, Step("log_softmax", (rec.register(x),), rec.width(x)))


def _unit(
    rec: Recorder, result: Tensor, /, x: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, **_: Any
) -> None:
    if p != 2 or dim not in (1, -1):
        raise NotNativeError("normalises in another way than by rows")
    rec.track(result, Step("unit", (rec.register(x),), rec.width(x)))


# read the kind of a tracked tensor, not its values
UNRELATED = {"new_ones", "new_zeros", "new_full", "new_empty", "ones_like", "zeros_like"}

RECORDED: dict[str, Callable[..., None]] = {
    "linear": _linear,
    "matmul": _product,
    "mm": _product,
    "__matmul__": _product,
    "addmm": _addmm,
    "relu": _activate("relu"),
    "relu_": _activate("relu"),
    "elu": _activate("elu", 1.0),
    "elu_": _activate("elu", 1.0),
    "leaky_relu": _activate("leaky_relu", 0.01),
    "leaky_relu_": _activate("leaky_relu", 0.01),
    "tanh": _activate("tanh"),
    "sigmoid": _activate("sigmoid"),
    "gelu": _activate("gelu"),
    "silu": _activate("silu"),
    "softplus": _activate("softplus", 1.0),
    "prelu": _prelu,
    "dropout": _dropout,
    "batch_norm": _batch_norm,
    "layer_norm": _layer_norm,
    "add": _linear_combination(1.0),
    "add_": _linear_combination(1.0),
    "__radd__": _linear_combination(1.0),
    "__iadd__": _linear_combination(1.0),
    "sub": _linear_combination(-1.0),
    "__sub__": _linear_combination(-1.0),
    "__rsub__": _linear_combination(-1.0, swapped=True),
    "rsub": _linear_combination(-1.0, swapped=True),
    "mul": _multiply,
    "mul_": _multiply,
    "__rmul__": _multiply,
    "div": _divide,
    "__truediv__": _divide,
    "true_divide": _divide,
    "maximum": _maximum,
    "cat": _concatenate,
    "concat": _concatenate,
    "__getitem__": _slice,
    "view": _same,
    "reshape": _same,
    "squeeze": _same,
    "flatten": _same,
    "clone": _same,
    "contiguous": _same,
    "detach": _same,
    "to": _same,
    "float": _same,
    "log_softmax": _log_softmax,
    "normalize": _unit,
}
