from collections import Counter
from dataclasses import replace

import pytest

from gst.base.errors import InputError
from gst.lab.bench.cells import Cell, chosen, groups
from gst.lab.bench.experiments import EXPERIMENTS, PROFILES, RECIPES, cells_of
from gst.methods import METHODS
from gst.train.settings import make_settings

CELL = Cell("rq1", "quick", "Cora", "gcn", "gst", "paper", 0.4, 0, settings={"hidden": 64})
CHANGES = {
    **{"backbone": "gin", "method": "ugs", "recipe": "", "sparsity": 0.5, "seed": 1, "spectrum": True},
    **{"variation": {"tune": False}, "settings": {"hidden": 32}, "options": {"l1": 0.1}},
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_key_depends_on_all_that_decides_the_result(name):
    assert replace(CELL, **{name: CHANGES[name]}).key("data") != CELL.key("data")


def test_a_key_depends_on_the_data_and_not_on_who_asks():
    assert CELL.key("data") != CELL.key("other")
    assert replace(CELL, experiment="rq3", profile="paper", dataset="cora").key("data") == CELL.key("data")


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_cell_is_unique_and_has_good_settings(experiment, profile):
    cells = cells_of(experiment, profile)
    assert cells
    assert max(Counter(cell.key(cell.dataset) for cell in cells).values()) == 1
    assert max(Counter(cell.command for cell in cells).values()) == 1
    for cell in {(c.dataset, c.backbone, c.method, c.recipe, c.varied): c for c in cells}.values():
        varied = {n: v for n, v in cell.variation.items() if n not in ("relocated", "rounds")}
        make_settings(cell.dataset, cell.backbone, cell.settings | varied)
        assert set(cell.options) <= set(METHODS[cell.method.split("+")[0]].options)
        assert (cell.recipe in RECIPES) == (cell.method == "gst")


def test_the_quick_table_of_one_graph_and_backbone():
    cells = list(chosen(cells_of("rq1", "quick"), "dataset=cora,backbone=GCN"))
    found = Counter((cell.method, cell.recipe) for cell in cells)
    assert found == Counter({(m, r): 8 * 3 for m in METHODS for r in (RECIPES if m == "gst" else ("",))})
    assert {cell.settings["anchor_epochs"] + cell.settings["sparse_epochs"] for cell in cells} == {200}


def settings_of(cell):
    return make_settings(
        cell.dataset, cell.backbone, {**cell.settings, **({"recipe": cell.recipe} if cell.recipe else {})}
    )


def test_large_graphs_are_trained_with_the_settings_that_go_with_them():
    for dataset in ("Computers", "Physics"):
        cells = chosen(cells_of("rq1", "quick"), f"dataset={dataset}")
        expected = {backbone: make_settings(dataset, backbone, {}) for backbone in ("sage", "cluster-gcn")}
        for cell in cells:
            assert settings_of(cell).model_copy(update={"recipe": "deploy"}) == expected[cell.backbone]


def test_the_paper_s_profile_runs_ogb_as_the_paper_does():
    for cell in chosen(cells_of("rq1", "paper"), "dataset=ogbn-arxiv,dataset=ogbn-proteins,dataset=ogbn-products"):
        found = settings_of(cell)
        assert (found.sparse_epochs, found.lr, found.interval) == (300, 0.01, 3)
        assert found.anchor_epochs == (100 if (cell.dataset, cell.backbone) == ("ogbn-arxiv", "cluster-gcn") else 200)
        batch = {"sage": "neighbors", "cluster-gcn": "clusters"}[cell.backbone]
        assert found.batch == ("full" if cell.method == "ugs" else batch)
        assert f", {found.batch} 1," in cell.versions
        assert found.setting == ("transductive" if cell.method == "ugs" or cell.recipe == "retrain" else "inductive")


def test_a_command_names_its_cell_alone():
    cells = cells_of("rq5-schedule", "quick", seeds=4)
    for cell in cells[::7]:
        words = cell.command.split("--only ")[1].strip("'")
        assert list(chosen(cells, words)) == [cell]


def test_groups_keep_their_cells_in_order():
    cells = cells_of("rq1", "smoke")
    assert sorted(map(str, cells)) == sorted(str(cell) for group in groups(cells) for cell in group)
    for group in groups(cells):
        assert len({cell.group for cell in group}) == 1
        assert [cells.index(cell) for cell in group] == sorted(cells.index(cell) for cell in group)


@pytest.mark.parametrize("only", ["cora", "data=cora", "dataset"])
def test_a_bad_filter_gets_one_line(only):
    with pytest.raises(InputError, match="NAME=VALUE is needed"):
        chosen([CELL], only)


def test_a_wrong_name_lists_the_right_ones():
    with pytest.raises(InputError, match=r"unknown experiment 'rq9'.*rq5-schedule"):
        cells_of("rq9")
