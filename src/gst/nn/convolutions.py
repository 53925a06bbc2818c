"""The convolutions of PyG as steps of a tape: one function each, the formula in the layer's own parameters.

Only what these functions cover is taken; a layer with other options raises ``NotNativeError``. That the formulas are
right is not assumed: :func:`gst.nn.recognise.native` compares answers.
"""

import inspect
import math
from collections.abc import Callable
from typing import Any

import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import MessagePassing, SumAggregation

from gst.nn.recorder import NotNativeError, Recorder
from gst.nn.tape import Diagonal, Norm

Formula = Callable[..., Tensor]
FORMULAS: dict[type[nn.Module], Formula] = {}


def _formula(kind: type[nn.Module]) -> Callable[[Formula], Formula]:
    def register(formula: Formula) -> Formula:
        FORMULAS[kind] = formula
        return formula

    return register


def lowered(recorder: Recorder, layer: nn.Module) -> Callable[..., Tensor]:
    """A forward for ``layer`` that records its formula."""
    formula, signature = FORMULAS.get(type(layer)), inspect.signature(layer.forward)

    def forward(*args: Any, **kwargs: Any) -> Tensor:
        if formula is None:
            raise NotNativeError(f"has a {type(layer).__name__}")
        given = dict(signature.bind(*args, **kwargs).arguments)
        if isinstance(layer, MessagePassing):
            if layer.flow != "source_to_target" or getattr(layer, "cached", False):
                raise NotNativeError(f"has a {type(layer).__name__} with flow or cached set")
            weight = _check_index(recorder, given.pop("edge_index", None), given.pop("edge_weight", None))
            if weight is not None and weight is not recorder.graph.get("edge_weight"):
                raise NotNativeError("computes its own edge weights")
            if type(layer) in _COUNTING:
                recorder.use_weights(False)
            else:
                recorder.use_weights(weight is not None)
        return formula(recorder, layer, **{name: value for name, value in given.items() if value is not None})

    return forward


def _check_index(recorder: Recorder, index: object, weight: object) -> object:
    """Refuses other edges than those of the graph; returns the weights that come with them."""
    graph = recorder.graph
    if index is not None and index is graph.get("adj_t"):
        return graph.get("edge_weight") if weight is None else weight
    plain = isinstance(index, Tensor) and index.layout == torch.strided
    if index is graph.edge_index or (plain and torch.equal(index, graph.edge_index)):  # type: ignore[arg-type]
        return weight
    raise NotNativeError("changes the edges before a layer")


def _sums(layer: MessagePassing) -> None:
    if not isinstance(layer.aggr_module, SumAggregation):
        raise NotNativeError(f"has a {type(layer).__name__} with aggr={layer.aggr!r}")


def _biased(x: Tensor, bias: Tensor | None) -> Tensor:
    return x if bias is None else x + bias


def _normalised(rec: Recorder, layer: Any, x: Tensor, *, loops: bool) -> Tensor:
    """D̃^-½ Ã D̃^-½ X, or sums of weighted neighbours."""
    if not getattr(layer, "normalize", True):
        return rec.convolve(x, "sum")
    # without weights PyG adds self-loops of weight 1 even where ``improved`` asks for 2
    fill = 2.0 if getattr(layer, "improved", False) and rec.weighted else 1.0
    return rec.convolve(x, "symmetric", Diagonal("fill" if rec.weighted else "once", fill) if loops else Diagonal())


@_formula(pyg.GCNConv)
def _gcn(rec: Recorder, layer: Any, x: Tensor) -> Tensor:
    _sums(layer)
    return _biased(_normalised(rec, layer, layer.lin(x), loops=layer.add_self_loops), layer.bias)


@_formula(pyg.SAGEConv)
def _sage(rec: Recorder, layer: Any, x: Tensor) -> Tensor:
    sent = layer.lin(x).relu() if layer.project else x
    out = layer.lin_l(rec.convolve(sent, _mean_or_sum(layer)))
    if layer.root_weight:
        out = out + layer.lin_r(x)
    return functional.normalize(out, p=2.0, dim=-1) if layer.normalize else out


def _mean_or_sum(layer: MessagePassing) -> Norm:
    if layer.aggr not in ("mean", "sum", "add"):
        raise NotNativeError(f"has a {type(layer).__name__} with aggr={layer.aggr!r}")
    return "mean" if layer.aggr == "mean" else "sum"


@_formula(pyg.GraphConv)
def _graph(rec: Recorder, layer: Any, x: Tensor) -> Tensor:
    norm = _mean_or_sum(layer)
    if norm == "mean" and rec.weighted:
        raise NotNativeError("takes means of weighted messages")
    return layer.lin_rel(rec.convolve(x, norm)) + layer.lin_root(x)


@_formula(pyg.GINConv)
def _gin(rec: Recorder, layer: Any, x: Tensor) -> Tensor:
    _sums(layer)
    return layer.nn(rec.convolve(x, "sum", Diagonal("add", 1 + float(layer.eps))))


@_formula(pyg.ClusterGCNConv)
def _cluster(rec: Recorder, layer: Any, x: Tensor) -> Tensor:
    if layer.diag_lambda or not layer.add_self_loops:
        raise NotNativeError("has a ClusterGCNConv with diag_lambda or without self-loops")
    return layer.lin_out(rec.convolve(x, "mean", Diagonal("replace", 1.0))) + layer.lin_root(x)


@_formula(pyg.SGConv)
def _sg(rec: Recorder, layer: Any, x: Tensor) -> Tensor:
    for _ in range(layer.K):
        x = _normalised(rec, layer, x, loops=layer.add_self_loops)
    return layer.lin(x)


@_formula(pyg.TAGConv)
def _tag(rec: Recorder, layer: Any, x: Tensor) -> Tensor:
    out = layer.lins[0](x)
    for lin in layer.lins[1:]:
        x = _normalised(rec, layer, x, loops=False)
        out = out + lin(x)
    return _biased(out, layer.bias)


@_formula(pyg.APPNP)
def _appnp(rec: Recorder, layer: Any, x: Tensor) -> Tensor:
    start = x
    for _ in range(layer.K):
        x = _normalised(rec, layer, x, loops=layer.add_self_loops) * (1 - layer.alpha)
        x = x + layer.alpha * start
    return x


@_formula(pyg.LGConv)
def _lg(rec: Recorder, layer: Any, x: Tensor) -> Tensor:
    return _normalised(rec, layer, x, loops=False)


@_formula(pyg.GCN2Conv)
def _gcn2(rec: Recorder, layer: Any, x: Tensor, x_0: Tensor) -> Tensor:
    x = _normalised(rec, layer, x, loops=layer.add_self_loops) * (1 - layer.alpha)
    start, beta = layer.alpha * x_0, layer.beta
    if layer.weight2 is None:
        out = x + start
        return (1 - beta) * out + beta * (out @ layer.weight1)
    return (1 - beta) * x + beta * (x @ layer.weight1) + (1 - beta) * start + beta * (start @ layer.weight2)


@_formula(pyg.ARMAConv)
def _arma(rec: Recorder, layer: Any, x: Tensor) -> Tensor:
    total: Tensor | None = None
    for stack in range(layer.num_stacks):
        out = x
        for t in range(layer.num_layers):
            shared = 0 if layer.shared_weights else t
            weight = layer.init_weight if t == 0 else layer.weight[0 if layer.shared_weights else t - 1]
            out = rec.convolve(out @ weight[stack], "symmetric") + x @ layer.root_weight[shared][stack]
            out = out if layer.bias is None else out + layer.bias[shared][stack].view(-1)
            out = out if layer.act is None else layer.act(out)
        total = out if total is None else total + out
    assert total is not None
    return total / layer.num_stacks


@_formula(pyg.LEConv)
def _le(rec: Recorder, layer: Any, x: Tensor) -> Tensor:
    degree = rec.convolve(x.new_ones(x.shape[0], 1), "sum")
    return rec.convolve(layer.lin1(x), "sum") - layer.lin2(x) * degree + layer.lin3(x)


def _by_head(rows: Tensor, vector: Tensor) -> Tensor:
    """[in, heads]: the products of each head's rows [heads · each, in] with its vector [heads, each]."""
    heads, each = vector.shape
    return (rows.view(heads, each, -1) * vector.unsqueeze(-1)).sum(1).t()


def _combined(layer: Any, out: Tensor) -> Tensor:
    """The heads side by side, or their mean."""
    if layer.concat:
        return out
    mean = torch.eye(layer.out_channels).repeat(layer.heads, 1) / layer.heads
    return out @ mean.to(out)


def _without_attributes(layer: Any, given: dict[str, Any]) -> None:
    if given and getattr(layer, "lin_edge", None) is not None:
        raise NotNativeError(f"has a {type(layer).__name__} that reads edge_attr")


@_formula(pyg.GATConv)
def _gat(rec: Recorder, layer: Any, x: Tensor, **given: Any) -> Tensor:
    _without_attributes(layer, given)
    source, target = (layer.lin, layer.lin) if layer.lin is not None else (layer.lin_src, layer.lin_dst)
    query = x @ _by_head(target.weight, layer.att_dst[0]).detach()
    key = x @ _by_head(source.weight, layer.att_src[0]).detach()
    options: dict[str, Any] = {"loops": layer.add_self_loops, "slope": layer.negative_slope}
    out = _combined(layer, rec.attend(query, key, source(x), layer.heads, "add", **options))
    out = out if layer.res is None else out + layer.res(x)
    return _biased(out, layer.bias)


@_formula(pyg.GATv2Conv)
def _gatv2(rec: Recorder, layer: Any, x: Tensor, **given: Any) -> Tensor:
    _without_attributes(layer, given)
    key = layer.lin_l(x)
    query = key if layer.share_weights else layer.lin_r(x)
    options: dict[str, Any] = {"loops": layer.add_self_loops, "slope": layer.negative_slope, "vector": layer.att[0]}
    out = _combined(layer, rec.attend(query, key, key, layer.heads, "add-first", **options))
    out = out if layer.res is None else out + layer.res(x)
    return _biased(out, layer.bias)


@_formula(pyg.TransformerConv)
def _transformer(rec: Recorder, layer: Any, x: Tensor, **given: Any) -> Tensor:
    _without_attributes(layer, given)
    rows = layer.lin_query(x), layer.lin_key(x), layer.lin_value(x)
    scale = 1 / math.sqrt(layer.out_channels)
    out = _combined(layer, rec.attend(*rows, layer.heads, "dot", loops=False, scale=scale))
    if not layer.root_weight:
        return out
    root = layer.lin_skip(x)
    if layer.lin_beta is None:
        return out + root
    beta = layer.lin_beta(torch.cat([out, root, out - root], dim=-1)).sigmoid()
    return beta * root + (1 - beta) * out


@_formula(pyg.JumpingKnowledge)
def _jumping(rec: Recorder, layer: Any, xs: list[Tensor]) -> Tensor:
    if layer.mode == "cat":
        return torch.cat(xs, dim=-1)
    if layer.mode != "max":
        raise NotNativeError("has a JumpingKnowledge with an LSTM")
    top = xs[0]
    for x in xs[1:]:
        top = torch.maximum(top, x)
    return top


# these count columns, whatever their weight
_COUNTING = {pyg.SAGEConv, pyg.GINConv, pyg.ClusterGCNConv, pyg.GATConv, pyg.GATv2Conv, pyg.TransformerConv}
