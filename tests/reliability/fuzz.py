"""Random graphs, settings and bytes: only documented errors, and every promise about masks holds."""

from typing import Any

import torch
from hypothesis import HealthCheck, Phase, given
from hypothesis import seed as hypothesis_seed
from hypothesis import settings as profile
from hypothesis import strategies as st
from torch_geometric.data import Data

from graphs import graphs, taken
from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet
from gst.methods import METHODS
from gst.storage import files
from gst.testing import check_graph, check_mask
from gst.train.settings import Batching, Masking, Training, Updates, make_config

TOPOLOGY = sorted(name for name, method in METHODS.items() if method.kind == "topology")
LEARNED = sorted(name for name, method in METHODS.items() if method.kind == "learned")
FEW = {"hidden": 4, "heads": 1, "layers": 2, "anchor_epochs": 2, "sparse_epochs": 3, "interval": 1, "cache": False}
OWN = {"ugs": {"round_epochs": 1}, "wd-glt": {"round_epochs": 1}, "mgspar": {"inner_steps": 1, "meta_epochs": 1}}


@st.composite
def labelled(draw: Any) -> Data:
    """A small graph with labels and a split, in most cases suitable for training."""
    data = draw(graphs())
    nodes = int(data.num_nodes)
    numbers = st.lists(st.integers(0, 2), min_size=nodes, max_size=nodes)
    data.y, role = torch.tensor(draw(numbers)), torch.tensor(draw(numbers))
    if nodes >= 4 and draw(st.integers(0, 3)):  # two classes to train on, and no part without a node
        data.y[:2], role[:4] = torch.tensor([0, 1]), torch.tensor([0, 0, 1, 2])
    data.train_mask, data.val_mask, data.test_mask = role == 0, role == 1, role == 2
    return data


CONFIGS = (Training, Batching, Masking, Updates)
SETTINGS = sorted(name for config in CONFIGS for name in config.model_fields)
BUDGETS = st.one_of(
    st.fixed_dictionaries({"sparsity": st.floats(0, 0.99)}),
    st.fixed_dictionaries({"sparsity": st.floats(-0.2, 1.2)}),
    st.fixed_dictionaries({"keep": st.integers(-1, 60)}),
)
VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
CONFIGURATIONS = st.dictionaries(st.one_of(st.sampled_from(SETTINGS), st.text(max_size=8)), VALUES)


def check_topology(data: Data, name: str, budget: dict[str, Any]) -> bool:
    """Whether the method accepts the graph; its mask must then be right. It may only refuse by an ``InputError``."""
    try:
        method = METHODS[name](**budget)
        edges = EdgeSet.from_data(data, method.counts_by)
        kept, scores = method.select(edges)
    except InputError:
        return False
    assert not scores.isnan().any()
    mask = edges.to_columns(kept, True)
    check_mask(data, mask, by=method.counts_by, **budget)
    check_graph(data, edges.sparse_graph(data, kept), mask)
    return True


def check_learned(data: Data, name: str, budget: dict[str, Any]) -> bool:
    try:
        found = METHODS[name](**budget, **taken(name, FEW), **OWN.get(name, {})).fit(data)
    except InputError:
        return False
    check_mask(data, found.result_.edge_mask, by=found.counts_by, **budget)
    check_graph(data, found.transform(data), found.result_.edge_mask)
    return True


def check_settings(values: dict[str, Any]) -> bool:
    try:
        for config in CONFIGS:
            make_config(config, values)
    except InputError as error:
        assert "\n" not in str(error)
        return False
    return True


def fuzz(examples: int, kind: str, seed: int = 0) -> dict[str, int]:
    """Runs a number of examples; counts those accepted and those refused."""
    seen = {"accepted": 0, "refused": 0}
    methods = st.sampled_from(TOPOLOGY if kind == "topology" else LEARNED)
    data = graphs() if kind == "topology" else labelled()
    check = check_topology if kind == "topology" else check_learned
    search = profile(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=False,  # the seed decides
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )

    @search
    @hypothesis_seed(seed)
    @given(data, methods, BUDGETS)
    def trial(data: Data, name: str, budget: dict[str, Any]) -> None:
        seen["accepted" if check(data, name, budget) else "refused"] += 1

    trial()
    return seen


def parse(content: bytes, path: Any) -> None:
    """Any bytes as any artefact: refused, never a crash."""
    path.write_bytes(content)
    for read in (files.read_tensors, files.read_json):
        try:
            read(path)
        except InputError as error:
            assert "\n" not in str(error)
        else:
            raise AssertionError(f"{read.__name__} took {content!r} for a file of gst")
