"""What explainers attribute to edges, against PyG's models and explainer, by hand, and brute force."""

from itertools import permutations

import pytest
import torch
from torch_geometric.explain import AttentionExplainer, Explainer
from torch_geometric.nn.models import GAT, GCN

import gst
from graphs import new_run, pairs, random_graph
from gst import Attribution, InputError
from gst.methods.attribution import slope_of_answers

SHORT = {"hidden": 8, "heads": 2, "anchor_epochs": 8, "sparse_epochs": 8, "lr": 0.05, "dropout": 0.0, "cache": False}


def found(data, explainer, **more):
    params = {"sparsity": 0.5, "explainer": explainer, **SHORT, **more}
    est = Attribution(**params)
    run = est.run(data)
    est.fit_run(run)
    return est, run


def pyg_gcn(backbone):
    model = GCN(5, 8, 2, 3)
    for ours, theirs in zip(backbone.layers, model.convs, strict=True):
        theirs.lin.weight.data, theirs.bias.data = ours.weight.data.t().contiguous(), ours.bias.data
    return model.eval()


def answers(model, data, weight):
    """F(g) as PyG computes it, the gates as edge weights, which its GCN normalises."""
    everything = model(data.x, data.edge_index).argmax(-1).detach()
    return model(data.x, data.edge_index, weight).log_softmax(-1).gather(1, everything[:, None]).mean()


def slope(model, data, weight):
    weight = weight.clone().requires_grad_()
    return torch.autograd.grad(answers(model, data, weight), weight)[0]


def of_pairs(run, columns):
    """Sum over both arcs of every pair."""
    edges = run.edges
    return torch.zeros(edges.num_edges).index_add(0, edges.column_edge, columns.float())


@pytest.mark.parametrize("explainer", ["saliency", "integrated-gradients"])
def test_gradients_are_those_of_pyg_s_model_in_its_edge_weights(explainer):
    data = random_graph(nodes=30, edges=60)
    est, run = found(data, explainer, steps=9)
    model, ones = pyg_gcn(est.result_.model), torch.ones(data.num_edges)
    if explainer == "saliency":
        wanted = of_pairs(run, slope(model, data, ones)).abs()
    else:
        steps = [slope(model, data, (k + 0.5) / 9 * ones) for k in range(9)]
        wanted = of_pairs(run, torch.stack(steps).mean(0))
    assert torch.allclose(est.found_.scores.float(), wanted, atol=1e-6)
    kept = wanted[est.found_.keep_mask]
    assert float(kept.min()) >= float(wanted[~est.found_.keep_mask].max()) - 1e-6


def test_integrated_gradients_add_up_to_what_all_edges_do_together():
    data = random_graph(nodes=30, edges=60)
    est, _ = found(data, "integrated-gradients", steps=400)
    model = pyg_gcn(est.result_.model)
    with torch.no_grad():
        together = answers(model, data, torch.ones(data.num_edges)) - answers(model, data, torch.zeros(data.num_edges))
    assert float(est.found_.scores.sum()) == pytest.approx(float(together), abs=2e-3)


def test_the_shapley_values_are_near_those_of_all_orders():
    data = pairs((0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3), nodes=5)
    torch.manual_seed(0)
    data.x = torch.randn(5, 5)
    est, run = found(data, "shapley", steps=3000)
    network = run.network()
    network.module.load_state_dict(run.dense.model)
    network.module.eval()
    wanted_class = run.dense.logits.argmax(-1)

    def value(kept):
        with torch.no_grad():
            logits = network.logits(run.edges, kept).log_softmax(-1)
        return float(logits.gather(1, wanted_class[:, None]).mean())

    exact = torch.zeros(6)
    for order in permutations(range(6)):
        kept = torch.zeros(6)
        before = value(kept)
        for edge in order:
            kept[edge] = 1
            after = value(kept)
            exact[edge] += (after - before) / 720
            before = after
    close = torch.corrcoef(torch.stack([exact.double(), est.found_.scores]))[0, 1]
    assert float(close) > 0.8  # slopes stand in for differences, which are large where every edge matters


def test_attention_is_that_of_pyg_s_explainer():
    data = random_graph(nodes=20, edges=40)
    est, run = found(data, "attention", backbone="gat")
    model = GAT(5, 8, 2, 3, heads=2, act="elu")
    model.convs[1] = model.convs[1].__class__(8, 3, heads=1)
    for ours, theirs in zip(est.result_.model.layers, model.convs, strict=True):
        theirs.lin.weight.data, theirs.bias.data = ours.weight.data.t().contiguous(), ours.bias.data
        theirs.att_src.data, theirs.att_dst.data = ours.attend_source.data[None], ours.attend_target.data[None]
    model.eval()
    assert torch.allclose(model(data.x, data.edge_index), run.dense.logits, atol=1e-5)
    explainer = Explainer(
        model,
        AttentionExplainer(),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    mask = explainer(data.x, data.edge_index).edge_mask
    for edge in range(run.edges.num_edges):
        wanted = mask[run.edges.column_edge == edge].max()
        assert float(est.found_.scores[edge]) == pytest.approx(float(wanted), abs=1e-5)


def test_the_model_is_the_dense_one_and_the_user_s_is_taken_as_it_is():
    data = random_graph(nodes=30, edges=60)
    torch.manual_seed(1)
    model = GCN(5, 8, 2, 3)
    result = gst.sparsify(data, "attribution", model=model, sparsity=0.5, dense=True)
    for name, weight in model.state_dict().items():
        assert torch.equal(result.model.state_dict()[name], weight)
    assert 0 <= result.metrics["agreement"] <= 1


def test_slopes_of_removed_edges_are_finite():
    run = new_run(random_graph(nodes=30, edges=60), **SHORT)
    network = run.network()
    network.module.eval()
    assert bool(slope_of_answers(run, network)(torch.zeros(run.edges.num_edges)).isfinite().all())


def test_what_cannot_be_explained_is_refused():
    with pytest.raises(InputError, match="explainer = 'luck'"):
        Attribution(sparsity=0.5, explainer="luck")
    with pytest.raises(InputError, match="steps = 0"):
        Attribution(sparsity=0.5, steps=0)
    with pytest.raises(InputError, match="take backbone gat or another explainer"):
        found(random_graph(nodes=30, edges=60), "attention")
