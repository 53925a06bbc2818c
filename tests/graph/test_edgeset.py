import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.utils import to_scipy_sparse_matrix

from graphs import KINDS, graphs, random_graph
from gst.base.errors import InputError
from gst.graph.edgeset import LOOP, EdgeSet, check_graph


@given(graphs(), st.booleans(), st.booleans())
def test_edges_and_arcs_equal_brute_force(data, is_sorted, weighted):
    columns = [tuple(column) for column in data.edge_index.t().tolist()]
    columns = sorted(columns) if is_sorted else columns
    data.edge_index = torch.tensor(columns).t()
    weights = [1.0 + i / 4 if weighted else 1.0 for i in range(len(columns))]  # sums are exact
    if weighted:
        data.edge_weight = torch.tensor(weights)
    edges = EdgeSet.from_data(data)

    proper = {(u, v) for u, v in columns if u != v}
    directed = any((v, u) not in proper for u, v in proper)
    numbered = sorted(proper if directed else {(min(arc), max(arc)) for arc in proper})
    number = {pair: e for e, pair in enumerate(numbered)}
    if not directed:
        number |= {(v, u): e for (u, v), e in number.items()}
    arcs = sorted(proper, key=lambda arc: (arc[1], arc[0]))
    weight = [sum(w for w, column in zip(weights, columns, strict=True) if column == arc) for arc in arcs]
    loops = [
        sum(w for w, column in zip(weights, columns, strict=True) if column == (i, i)) for i in range(data.num_nodes)
    ]

    assert edges.directed == directed
    assert edges.pairs.t().tolist() == [list(pair) for pair in numbered]
    assert edges.columns.tolist() == list(range(len(columns)))
    assert edges.column_edge.tolist() == [number.get(column, LOOP) for column in columns]
    assert edges.arcs.t().tolist() == [list(arc) for arc in arcs]
    assert edges.arc_edge.tolist() == [number[arc] for arc in arcs]
    assert edges.loops.tolist() == loops
    assert (edges.arc_weight is None) == all(w == 1 for w in weight)
    assert edges.arc_weight is None or edges.arc_weight.tolist() == weight
    expected = torch.zeros(edges.num_edges).index_add_(0, edges.arc_edge, torch.tensor(weight))
    assert torch.equal(edges.edge_weight, expected if directed else expected / 2)


@pytest.mark.parametrize("columns", [[], [(2, 2)]])
def test_no_edge_at_all(columns):
    index = torch.tensor(columns, dtype=torch.long).reshape(-1, 2).t()
    edges = EdgeSet.from_edge_index(index, num_nodes=3)
    assert not edges.directed and edges.num_edges == 0
    assert edges.column_edge.tolist() == [LOOP] * len(columns)
    assert edges.arcs.shape == (2, 0) and edges.arc_edge.numel() == 0 and edges.adjacency.pattern.nnz == 3


@pytest.mark.parametrize("node", [-1, 3])
def test_an_edge_set_refuses_unknown_nodes(node):
    with pytest.raises(InputError, match="outside 0 … 2"):
        EdgeSet.from_edge_index(torch.tensor([[0, 1], [1, node]]), num_nodes=3)


@given(graphs(), st.randoms(use_true_random=False))
def test_subset_is_the_edge_set_of_the_sparse_graph(data, random):
    edges = EdgeSet.from_data(data)
    keep_mask = torch.tensor([random.random() < 0.6 for _ in range(edges.num_edges)])
    sparse = edges.sparse_graph(data, keep_mask)
    assert sparse.num_nodes == data.num_nodes
    subset = edges.subset(keep_mask)
    assert torch.equal(data.edge_index[:, subset.columns], sparse.edge_index)
    if not keep_mask.any():
        return
    again = EdgeSet.from_edge_index(sparse.edge_index, data.num_nodes)
    assert torch.equal(again.arcs, subset.arcs)
    assert torch.equal(again.loops, subset.loops)
    if again.directed == edges.directed:  # a directed graph may become symmetric when arcs go
        assert torch.equal(again.pairs, subset.pairs)
        assert torch.equal(again.column_edge, subset.column_edge)
        assert torch.equal(again.arc_edge, subset.arc_edge)


@pytest.mark.parametrize("kind", KINDS)
def test_adjacency_is_the_matrix_scipy_builds(kind):
    data = random_graph(**kind)
    edges = EdgeSet.from_data(data)
    diagonal = edges.loops
    dense = edges.adjacency.pattern.matrix(edges.adjacency.values(None, diagonal, torch.float32)).to_dense()
    expected = to_scipy_sparse_matrix(data.edge_index, data.get("edge_weight"), data.num_nodes).toarray().T
    assert torch.allclose(dense, torch.tensor(expected, dtype=dense.dtype))


def test_every_edge_attribute_is_filtered_alike_and_nodes_stay():
    data = random_graph(nodes=10, edges=25, weighted=True)
    columns = data.edge_index.shape[1]
    data.edge_attr = torch.arange(columns).float().unsqueeze(1).repeat(1, 2)
    data.edge_kind = torch.arange(columns)
    edges = EdgeSet.from_data(data)
    keep_mask = torch.arange(edges.num_edges) % 2 == 0
    sparse = edges.sparse_graph(data, keep_mask)
    ids = sparse.edge_kind
    assert torch.equal(sparse.edge_index, data.edge_index[:, ids])
    assert torch.equal(sparse.edge_attr[:, 0].long(), ids)
    assert torch.equal(sparse.edge_weight, data.edge_weight[ids])
    assert torch.equal(sparse.x, data.x) and torch.equal(sparse.y, data.y)
    assert sorted(ids.tolist()) == edges.to_columns(keep_mask, True).nonzero().flatten().tolist()


def test_components():
    edges = EdgeSet.from_edge_index(torch.tensor([[0, 3], [1, 4]]), num_nodes=6)
    c = edges.components.tolist()
    assert c[0] == c[1] and c[3] == c[4] and len(set(c)) == 4


X = torch.ones(3, 2)
INDEX = torch.tensor([[0, 1], [1, 2]])
BAD = {
    "a torch_geometric.data.Data is needed": {"edge_index": INDEX},
    "data has no edge_index": Data(x=X),
    "edge_index has shape [3, 2]": Data(x=X, edge_index=torch.zeros(3, 2, dtype=torch.long)),
    "edge_index holds torch.float32": Data(x=X, edge_index=torch.zeros(2, 2)),
    "neither x nor num_nodes": Data(edge_index=INDEX),
    "the graph is empty (3 nodes, 0 columns)": Data(x=X, edge_index=INDEX[:, :0]),
    "the graph is empty (3 nodes, 1 columns)": Data(x=X, edge_index=torch.tensor([[1], [1]])),
    "column 1 is [1, 3]: node ids must lie in 0 … 2": Data(x=X, edge_index=torch.tensor([[0, 1], [1, 3]])),
    "column 0 is [-1, 1]": Data(x=X, edge_index=torch.tensor([[-1, 1], [1, 2]])),
    "x has shape [3]": Data(x=torch.ones(3), edge_index=INDEX, num_nodes=3),
    "x holds torch.complex64": Data(x=X.to(torch.complex64), edge_index=INDEX),
    "x is NaN or infinite at node 2": Data(x=torch.tensor([[0.0], [1.0], [float("nan")]]), edge_index=INDEX),
    "x is NaN or infinite at node 0": Data(x=torch.tensor([[float("inf")], [1.0], [1.0]]), edge_index=INDEX),
    "edge_weight has shape [3]": Data(x=X, edge_index=INDEX, edge_weight=torch.ones(3)),
    "edge_weight has values that are not positive": Data(x=X, edge_index=INDEX, edge_weight=torch.tensor([1.0, 0.0])),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_graphs_get_one_clear_line(message):
    with pytest.raises(InputError) as caught:
        check_graph(BAD[message])
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_subsets_of_more_edges_than_a_word_has_bits():
    torch.manual_seed(0)
    index = torch.randint(60, (2, 900))
    edges = EdgeSet.from_edge_index(torch.cat([index, index.flip(0)], 1), 60)
    keep_mask = torch.rand(edges.num_edges) < 0.4
    subset, column = edges.subset(keep_mask), edges.to_columns(keep_mask, True)
    number = torch.cat([keep_mask.cumsum(0) - 1, torch.tensor([LOOP])])
    assert torch.equal(subset.columns, edges.columns[column]) and torch.equal(subset.pairs, edges.pairs[:, keep_mask])
    assert torch.equal(subset.column_edge, number[edges.column_edge[column]])
