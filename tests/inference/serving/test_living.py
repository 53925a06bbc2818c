"""A graph that changes step by step equals one built at once, whatever comes in whatever order."""

import random

import numpy as np
import pytest
import torch
from test_engine import answers, assert_close, backbone
from torch_geometric.data import Data

import gst
from graphs import KINDS, random_graph
from gst import InputError
from gst.inference.serving.engine import NativeEngine
from gst.methods.removed import Removed
from gst.nn.backbones import BACKBONES
from gst.train.settings import Batching, Training


def cut(data: Data, model, by: str = "pairs", sparsity: float = 0.6, seed: int = 0) -> gst.Result:
    """A run with random scores, without training."""
    edges = gst.EdgeSet.from_edge_index(data.edge_index, int(data.num_nodes), data.get("edge_weight"), by)
    scores = torch.rand(edges.num_edges, generator=torch.Generator().manual_seed(seed)).double()
    kept = torch.zeros(edges.num_edges, dtype=torch.bool)
    kept[scores.argsort(descending=True)[: edges.num_edges - round(sparsity * edges.num_edges)]] = True
    mask = edges.to_columns(kept, True)
    metrics = {"sparsity": 1 - int(kept.sum()) / edges.num_edges, "by": edges.by, "edges_kept": int(kept.sum())}
    graph = edges.sparse_graph(data, kept)
    scores = edges.to_columns(scores, torch.inf)
    return gst.Result(graph, mask, scores, metrics, model, Training(), Batching(), removed=Removed.of(data, mask))


class Mirror:
    """What the graph should be, in sets and dictionaries."""

    def __init__(self, data: Data, undirected: bool) -> None:
        self.undirected = undirected
        self.x = dict(enumerate(data.x))
        self.edges = {self.key(u, v) for u, v in data.edge_index.t().tolist() if u != v}

    def key(self, u: int, v: int) -> tuple[int, int]:
        return (min(u, v), max(u, v)) if self.undirected else (u, v)

    def random_change(self, rng: random.Random, width: int, size: int) -> dict:
        nodes = len(self.x)
        change: dict = {"new_nodes": [], "add": [], "remove": [], "x": {}}
        for _ in range(size):
            kind = rng.choice(["add", "add", "remove", "x", "new"])
            if kind == "new":
                change["new_nodes"].append([rng.gauss(0, 1) for _ in range(width)])
                other = rng.randrange(nodes)
                change["add"].append((other, nodes + len(change["new_nodes"]) - 1))
            elif kind == "add":
                pair = self.key(*rng.sample(range(nodes), 2))
                if pair not in self.edges and pair not in change["add"] and pair[::-1] not in change["add"]:
                    change["add"].append(pair)
            elif kind == "remove" and self.edges:
                pair = rng.choice(sorted(self.edges))
                if pair not in change["remove"] and pair not in change["add"]:
                    change["remove"].append(pair)
            elif kind == "x":
                change["x"][rng.randrange(nodes)] = [rng.gauss(0, 1) for _ in range(width)]
        for row in change["new_nodes"]:
            self.x[len(self.x)] = torch.tensor(row)
        self.x.update({node: torch.tensor(row) for node, row in change["x"].items()})
        self.edges -= {self.key(*pair) for pair in change["remove"]}
        self.edges |= {self.key(*pair) for pair in change["add"]}
        return change


def arcs_of(engine: NativeEngine) -> set[tuple[int, int]]:
    start, source, _ = engine.state.arcs.packed(engine.num_nodes)
    return set(zip(source.tolist(), np.repeat(np.arange(engine.num_nodes), np.diff(start)).tolist(), strict=True))


def assert_same(engine: NativeEngine, other: NativeEngine) -> None:
    """To the last bit."""
    nodes = engine.num_nodes
    assert engine.num_nodes == other.num_nodes
    for one, two in zip(engine.state.arcs.packed(nodes), other.state.arcs.packed(nodes), strict=True):
        assert np.array_equal(one, two)
    for one, two in zip(engine.state.graph.nodes, other.state.graph.nodes, strict=True):
        assert np.array_equal(one[:, :nodes], two[:, :nodes])
    one, two = (each(range(engine.num_nodes)) for each in (engine, other))
    if engine.state.graph.features.products.shape[0]:  # their last bits depend on how many rows are multiplied at once
        assert_close(one, two)
    else:
        assert torch.equal(one, two)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by", ["pairs", "arcs"])
@pytest.mark.parametrize("products", [False, True])
def test_random_changes_equal_a_rebuild(kind, by, products):
    kind = {**kind, "duplicates": False}
    data = random_graph(nodes=40, edges=90, **kind)
    undirected = not kind.get("directed")
    result = cut(data, backbone("gcn", 5), by)
    engine = result.engine(updates=True, products=products)
    mirror, rng, edges_seen = Mirror(data, undirected), random.Random(1), 0
    per_edge = 2 if undirected and by == "arcs" else 1
    for step in range(30):
        outcome = engine.update(**mirror.random_change(rng, 5, 1 + step % 7))
        assert outcome.version == engine.version == step + 1 and engine.num_nodes == len(mirror.x)
        living = engine.living
        assert living.num_edges == per_edge * len(mirror.edges)
        assert living.num_kept == living.num_edges - round(result.metrics["sparsity"] * living.num_edges)
        arcs = arcs_of(engine)
        assert len(arcs) == living.num_kept * (2 if living.base.pairs else 1)
        assert all(mirror.key(*arc) in mirror.edges for arc in arcs)
        edges_seen += len(outcome.kept) + len(outcome.dropped)
        if step % 5 == 0:
            assert_same(engine, engine.rebuilt())
    assert edges_seen > 30
    assert_same(engine, engine.rebuilt())


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("thin", [False, True])
def test_answers_are_those_of_the_model_on_the_changed_graph(name, thin):
    data = random_graph(nodes=40, edges=90, features=30, loops=True)
    data.x = data.x * (torch.rand_like(data.x) < (0.05 if thin else 1))
    model = backbone(name, 30, layers=3)
    engine, mirror, rng = cut(data, model).engine(updates=True), Mirror(data, True), random.Random(2)
    for _ in range(12):
        engine.update(**mirror.random_change(rng, 30, 4))
    arcs = torch.tensor(sorted(arcs_of(engine))).t()
    loops = data.edge_index[:, data.edge_index[0] == data.edge_index[1]]
    x = torch.stack([mirror.x[node] for node in range(len(mirror.x))])
    changed = Data(x=x, edge_index=torch.cat([arcs, loops], 1))
    assert_close(engine(range(len(x))), answers(model, changed))


def test_the_order_of_changes_does_not_matter():
    data = random_graph(nodes=40, edges=90)
    result = cut(data, backbone("gcn", 5))
    rng, seen = random.Random(3), Mirror(data, True).edges
    pairs = {tuple(sorted(rng.sample(range(40), 2))) for _ in range(40)}
    steps = [{"add": [pair]} for pair in sorted(pairs - seen)] + [{"remove": [pair]} for pair in sorted(seen)[::4]]
    steps += [{"x": {3: [1.0] * 5}}]
    engines = []
    for seed in range(3):
        random.Random(seed).shuffle(steps)
        engines.append(result.engine(updates=True))
        for step in steps:
            engines[-1].update(**step)
    together = result.engine(updates=True)
    pairs = {name: [pair for step in steps for pair in step.get(name, ())] for name in ("add", "remove")}
    together.update(**pairs, x={3: [1.0] * 5})
    for engine in [*engines[1:], together]:
        assert_same(engines[0], engine)


def test_what_is_undone_leaves_no_trace():
    data = random_graph(nodes=40, edges=90)
    result = cut(data, backbone("sage", 5))
    engine, fresh = result.engine(updates=True), result.engine(updates=True)
    seen = sorted(Mirror(data, True).edges)
    new = next((u, v) for u in range(40) for v in range(u + 1, 40) if (u, v) not in seen)
    engine.update(add=[new], remove=seen[:20])
    assert arcs_of(engine) != arcs_of(fresh)
    engine.update(remove=[new], add=seen[:20])
    assert_same(engine, fresh)


def test_decisions_of_the_run_stand_and_new_edges_go_by_agreement():
    data = random_graph(nodes=40, edges=90)
    result = cut(data, backbone("gcn", 5), sparsity=0.5)
    engine = result.engine(updates=True)
    before, seen = arcs_of(engine), Mirror(data, True).edges
    new = [(u, v) for u in range(40) for v in range(u + 1, 40) if (u, v) not in seen][:50]
    outcome = engine.update(add=new)
    assert before <= arcs_of(engine) and not outcome.dropped and len(outcome.kept) in (25, 24, 26)
    p = torch.softmax(answers(result.model, result.graph).double() / 0.3, -1)
    worth = {pair: float(p[pair[0]] @ p[pair[1]]) for pair in new}
    assert min(worth[pair] for pair in outcome.kept) >= max(worth[p] for p in set(new) - set(outcome.kept)) - 1e-5


def test_removed_edges_return_by_their_rank_when_kept_ones_go():
    data = random_graph(nodes=40, edges=90)
    result = cut(data, backbone("gcn", 5), sparsity=0.5)
    engine, decisions = result.engine(updates=True), result.decisions()
    pairs = decisions.edges.pairs.t()
    kept, gone = pairs[decisions.keep_mask].tolist(), pairs[~decisions.keep_mask]
    outcome = engine.update(remove=kept[:10])
    by_score = gone[decisions.scores[~decisions.keep_mask].argsort(descending=True)].tolist()
    assert len(outcome.kept) == 5 and sorted(map(list, outcome.kept)) == sorted(by_score[:5])


def test_changes_that_do_not_fit_are_refused_and_change_nothing():
    data = random_graph(nodes=40, edges=90)
    result = cut(data, backbone("gcn", 5))
    engine = result.engine(updates=True)
    before, there = engine(range(40)), tuple(data.edge_index[:, 0].tolist())
    missing = next((u, v) for u in range(40) for v in range(u + 1, 40) if (u, v) not in Mirror(data, True).edges)
    bad = [
        ({"add": [there]}, "which is in the graph already"),
        ({"remove": [missing]}, "which is not in the graph"),
        ({"add": [(0, 40)]}, "add has node 40: the nodes are 0 … 39"),
        ({"add": [(0, 41)], "new_nodes": torch.zeros(1, 5)}, "add has node 41: the nodes are 0 … 40"),
        ({"remove": [(-1, 3)]}, "remove has node -1"),
        ({"add": [(3, 3)]}, "self-loops are no edges"),
        ({"add": [(0.5, 1)]}, "pairs"),
        ({"add": [(0, 1, 2)]}, "pairs"),
        ({"add": [(0, 1), (2,)]}, "not a list of pairs"),
        ({"x": {40: [0.0] * 5}}, "features for node 40"),
        ({"x": {"a": [0.0] * 5}}, "node ids are needed"),
        ({"x": {1: [0.0] * 4}}, "5 features are needed"),
        ({"x": {1: [0.0] * 4 + [float("nan")]}}, "NaN or infinite"),
        ({"x": {1: ["a"] * 5}}, "no array of numbers"),
        ({"x": {1: {"columns": [5], "values": [1.0]}}}, "columns from 0 to 4"),
        ({"new_nodes": [[0.0] * 4]}, "5 features are needed"),
        ({"add": [missing], "weight": [2.0]}, "have no weights"),
        ({"add": [missing], "weight": [1.0, 1.0]}, "one positive number for each"),
        ({"add": [missing], "remove": [missing]}, "which is not in the graph"),
    ]
    for change, words in bad:
        with pytest.raises(InputError, match=words):
            engine.update(**{"x": {0: [9.0] * 5}, **change} if "x" not in change else change)
        assert engine.version == 0 and torch.equal(engine(range(40)), before)
    with pytest.raises(InputError, match=r"result\.engine\(updates=True\)"):
        result.engine().update(remove=[there])
    result.removed = None
    with pytest.raises(InputError, match="does not hold the edges that were removed"):
        result.engine(updates=True)


def test_runs_keep_what_they_removed(tmp_path):
    data = random_graph(nodes=40, edges=120, weighted=True, loops=True)
    result = gst.sparsify(data, sparsity=0.5, hidden=8, anchor_epochs=2, sparse_epochs=2, cache=False)
    result.save(tmp_path)
    again = gst.Result.load(tmp_path)
    index, weight = again.removed.dense(again.graph, again.edge_mask)
    assert torch.equal(index, data.edge_index) and torch.equal(weight, data.edge_weight)
    engine, same = result.engine(updates=True), again.engine(updates=True)
    pair = tuple(index[:, (index[0] != index[1])][:, 3].tolist())
    for one in (engine, same):
        one.update(remove=[pair])
        one.update(add=[pair], weight=[0.25])
    assert_same(engine, same)
    assert_same(engine, engine.rebuilt())


@pytest.mark.parametrize("kind", [{}, {"weighted": True, "directed": True}])
@pytest.mark.parametrize("features", [None, "mmap"])
def test_a_saved_engine_goes_on_where_it_was(kind, features, tmp_path):
    data = random_graph(nodes=40, edges=90, **kind)
    engine = cut(data, backbone("gcn", 5)).engine(updates=True)
    mirror, rng = Mirror(data, not kind), random.Random(5)
    for _ in range(10):
        engine.update(**mirror.random_change(rng, 5, 5))
    again = gst.load_engine(engine.save(tmp_path / "engine.safetensors"), features=features)
    assert again.version == 10
    assert_same(engine, again)
    for _ in range(10):
        change = mirror.random_change(rng, 5, 5)
        assert engine.update(**change) == again.update(**change)
    assert_same(engine, again)
    assert_same(again, again.rebuilt())
