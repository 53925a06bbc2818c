from collections import Counter
from dataclasses import fields, replace

import pytest

from gst.base.errors import InputError
from gst.lab.bench.cells import Cell, filter_cells, group_cells
from gst.lab.bench.experiments import EXPERIMENTS, PROFILES, cells_of
from gst.methods import METHODS
from gst.train.presets import preset
from gst.train.schedule import num_updates
from gst.train.settings import Batching, Training, Updates, make_config

CELL = Cell("rq1", "quick", "Cora", "gcn", "gst", 0.4, 0, settings={"hidden": 64})
TRAINING = {*Training.model_fields, *Batching.model_fields}
CHANGES = {
    **{"backbone": "gin", "method": "ugs", "sparsity": 0.5, "seed": 1, "spectrum": True},
    **{"split": "paper:1", "models": ()},
    **{"variation": {"tune": False}, "settings": {"hidden": 32}, "options": {"l1": 0.1}},
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_key_depends_on_all_that_decides_the_result(name):
    assert replace(CELL, **{name: CHANGES[name]}).key("data") != CELL.key("data")


def test_a_key_depends_on_the_data_but_not_on_the_experiment():
    assert CELL.key("data") != CELL.key("other")
    assert replace(CELL, experiment="rq3", profile="paper", dataset="cora").key("data") == CELL.key("data")


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_cell_is_unique_and_has_valid_arguments(experiment, profile):
    cells = cells_of(experiment, profile)
    assert cells
    assert max(Counter(cell.key(cell.dataset) for cell in cells).values()) == 1
    assert max(Counter(cell.command for cell in cells).values()) == 1
    for cell in {(c.dataset, c.backbone, c.method, c.variation_text): c for c in cells}.values():
        varied = {n: v for n, v in cell.variation.items() if n not in ("relocated", "rounds")}
        arguments = {**cell.settings, **cell.options, **varied}
        known = set()
        for method in (METHODS.get(part, METHODS["random"]) for part in cell.method.split("+")):
            names = {argument.name for argument in fields(method)}
            method(sparsity=min(cell.sparsity, 0.9), **{name: arguments[name] for name in names & arguments.keys()})
            known |= names
        assert arguments.keys() <= known and cell.settings.keys() <= TRAINING


def test_the_quick_table_of_one_graph_and_backbone():
    cells = list(filter_cells(cells_of("rq1", "quick"), "dataset=cora,backbone=GCN"))
    methods = dict.fromkeys(METHODS, 8 * 3)
    assert Counter(cell.method for cell in cells) == {**methods, "edge-free": 3, "ensemble": 3, "drop-edge": 6}
    assert {cell.settings["anchor_epochs"] + cell.settings["sparse_epochs"] for cell in cells} == {200}


def config_of(kind, cell):
    return make_config(kind, preset(cell.dataset, cell.backbone), cell.settings, {"seed": 0})


def test_quick_runs_exchange_as_often_as_the_paper_s():
    for method in ("gst", "set", "snfs", "rigl", "mest"):
        cell = next(filter_cells(cells_of("rq1", "quick"), f"dataset=cora,method={method}"))
        assert num_updates(cell.settings["sparse_epochs"], cell.options["interval"]) - 1 == 19


def test_the_paper_s_profile_draws_the_paper_s_split_sizes_anew_for_every_seed():
    cells = list(filter_cells(cells_of("rq1", "paper"), "dataset=cora,dataset=computers,method=gst,sparsity=0.4"))
    assert {(cell.dataset, cell.seed, cell.split) for cell in cells} == {
        *(("Cora", seed, f"paper:{seed}") for seed in range(5)),
        *(("Computers", seed, "") for seed in range(5)),
    }
    assert all(cell.settings == {} and cell.options == {} for cell in cells)


def test_unseen_nodes_are_met_in_the_batches_of_the_backbone():
    for cell in cells_of("real", "quick"):
        batch = "full" if cell.method == "ugs" else {"sage": "neighbors", "cluster-gcn": "clusters"}[cell.backbone]
        assert cell.settings["inductive"] == (cell.method not in ("ugs", "retrain"))  # which judge all nodes
        assert cell.settings["batch"] == batch


def test_large_graphs_are_trained_with_their_presets():
    for dataset in ("Computers", "Physics"):
        for cell in filter_cells(cells_of("rq1", "quick"), f"dataset={dataset}"):
            for kind in (Training, Batching):
                assert config_of(kind, cell) == make_config(kind, preset(dataset, cell.backbone))


def test_the_paper_s_profile_runs_ogb_as_the_paper_does():
    names = ("ogbn-arxiv", "ogbn-proteins", "ogbn-products")
    for cell in filter_cells(cells_of("rq1", "paper"), ",".join(f"dataset={name}" for name in names)):
        training, batching = config_of(Training, cell), config_of(Batching, cell)
        assert (training.sparse_epochs, training.lr, config_of(Updates, cell).interval) == (300, 0.01, 3)
        short = (cell.dataset, cell.backbone) == ("ogbn-arxiv", "cluster-gcn")
        assert training.anchor_epochs == (100 if short else 200)
        batch = {"sage": "neighbors", "cluster-gcn": "clusters"}[cell.backbone]
        assert batching.batch == ("full" if cell.method == "ugs" else batch)
        assert f", {batching.batch} 1," in cell.versions
        assert training.inductive == (cell.method != "ugs")  # retrain overrides it


def test_a_command_names_its_cell_alone():
    cells = cells_of("rq5-schedule", "quick", seeds=4)
    for cell in cells[::7]:
        only = cell.command.split("--only ")[1].strip("'")
        assert list(filter_cells(cells, only)) == [cell]


def test_groups_keep_their_cells_in_order():
    cells = cells_of("rq1", "smoke")
    assert sorted(map(str, cells)) == sorted(str(cell) for group in group_cells(cells) for cell in group)
    for group in group_cells(cells):
        assert len({cell.group for cell in group}) == 1
        assert [cells.index(cell) for cell in group] == sorted(cells.index(cell) for cell in group)


@pytest.mark.parametrize("only", ["cora", "data=cora", "dataset"])
def test_a_bad_filter_gets_one_line(only):
    with pytest.raises(InputError, match="NAME=VALUE is needed"):
        filter_cells([CELL], only)


def test_a_wrong_name_lists_the_right_ones():
    with pytest.raises(InputError, match=r"unknown experiment 'rq9'.*rq5-schedule"):
        cells_of("rq9")
