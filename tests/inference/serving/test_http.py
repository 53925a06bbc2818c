"""The endpoint: right answers, clear refusals in JSON, and metrics that count."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from starlette.testclient import TestClient
from test_engine import answers, assert_close, backbone
from test_living import cut
from torch_geometric.nn.models import GAT

import gst
from graphs import random_graph
from gst.inference.serving import make_engine
from gst.inference.serving.http import Limits, application
from gst.storage import journal as journals


@pytest.fixture
def served():
    data = random_graph(nodes=40, edges=90)
    result = cut(data, backbone("gcn", 5))
    engine = result.engine(updates=True)
    return result, engine, TestClient(application(engine, Limits(max_bytes=2000, max_nodes=50)))


def test_answers_are_those_of_the_model(served):
    result, _, client = served
    expected = answers(result.model, result.graph)
    reply = client.post("/predict", json={"nodes": [7, 3, 7]})
    assert reply.status_code == 200
    found = reply.json()
    assert_close(torch.tensor(found["outputs"]), expected[[7, 3, 7]])
    assert found["answers"] == expected[[7, 3, 7]].argmax(-1).tolist() and found["version"] == 0
    x = torch.randn(1, 5)
    changed = answers(result.model, result.graph, result.graph.x.index_copy(0, torch.tensor([4]), x))
    reply = client.post("/predict", json={"nodes": [4], "x": x.tolist()})
    assert_close(torch.tensor(reply.json()["outputs"]), changed[[4]])


def test_updates_change_answers(served):
    result, _, client = served
    dense, _ = result.removed.dense(result.graph, result.edge_mask)
    gone = [p for p in dense.t().tolist() if p[0] < p[1]][:9]
    other = result.engine(updates=True)
    change = {"remove": gone, "x": {"3": [1.0] * 5}, "new_nodes": [[0.5] * 5], "add": [[40, 2]]}
    reply = client.post("/update", json=change)
    assert reply.status_code == 200 and reply.json()["version"] == 1 and reply.json()["new_nodes"] == [40]
    other.update(remove=gone, x={3: [1.0] * 5}, new_nodes=[[0.5] * 5], add=[(40, 2)])
    found = client.post("/predict", json={"nodes": [*range(41)]}).json()
    assert found["version"] == 1 and torch.equal(torch.tensor(found["outputs"]), other(range(41)))
    assert client.get("/healthz").json() == {"status": "ok", "nodes": 41, "version": 1}


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/predict", b"{", 400, "not JSON"),
        ("/predict", b"\xff", 400, "not JSON"),
        ("/predict", b"[1]", 400, "a JSON list"),
        ("/predict", b"{}", 400, "nodes is needed"),
        ("/predict", b'{"nodes": []}', 400, "nodes is needed"),
        ("/predict", b'{"nodes": 3}', 400, "nodes is needed"),
        ("/predict", b'{"nodes": [40]}', 400, "node 40 is not in the graph"),
        ("/predict", b'{"nodes": [-1]}', 400, "node -1"),
        ("/predict", b'{"nodes": [1.5]}', 400, "whole numbers"),
        ("/predict", b'{"nodes": ["1"]}', 400, "whole numbers"),
        ("/predict", b'{"nodes": [[1], [2, 3]]}', 400, "whole numbers"),
        ("/predict", b'{"nodes": [null]}', 400, "whole numbers"),
        ("/predict", b'{"nodes": [99999999999999999999999]}', 400, "whole numbers"),
        ("/predict", b'{"nodes": [1], "x": [[1, 2]]}', 400, "real numbers are needed"),
        ("/predict", b'{"nodes": [1], "x": [["a", 2, 3, 4, 5]]}', 400, "real numbers are needed"),
        ("/predict", b'{"nodes": [1], "x": [[1], [1, 2]]}', 400, "real numbers are needed"),
        ("/predict", b'{"nodes": [1], "x": [[NaN, 1, 2, 3, 4]]}', 400, "NaN or infinite"),
        ("/predict", b'{"nodes": [1], "model": "a"}', 400, "unknown 'model'"),
        ("/predict", json.dumps({"nodes": [1] * 51}).encode(), 413, "at most 50"),
        ("/predict", b" " * 2001, 413, "longer than 2000 bytes"),
        ("/update", b'{"add": [[0, 40]]}', 400, "add has node 40"),
        ("/update", b'{"add": "ab"}', 400, "pairs"),
        ("/update", b'{"add": [[1, 1]]}', 400, "self-loops"),
        ("/update", b'{"x": [1]}', 400, "features by node are needed"),
        ("/update", b'{"new_nodes": 3}', 400, "rows"),
        ("/update", b'{"new_nodes": [{"columns": [0]}]}', 400, "columns"),
        ("/update", b'{"weight": {}}', 400, "weight"),
        ("/update", b'{"drop": 1}', 400, "unknown 'drop'"),
        ("/nothing", b"", 404, "Not Found"),
    ],
)
def test_bad_requests_get_one_line_and_change_nothing(served, path, body, status, words):
    _, engine, client = served
    reply = client.post(path, content=body)
    assert reply.status_code == status and words in reply.json()["error"]
    assert engine.version == 0 and client.post("/predict", json={"nodes": [1]}).status_code == 200


def test_other_refusals(served, tmp_path, monkeypatch):
    _, engine, client = served
    assert client.get("/predict").status_code == 405
    reply = client.post("/predict", content=(b" " for _ in range(3000)))  # chunked: no length is claimed
    assert reply.status_code == 413
    fixed = TestClient(application(engine, Limits(updates=False)))
    assert fixed.post("/update", json={"x": {"1": [0.0] * 5}}).status_code == 403
    module = make_engine(GAT(5, 8, 2, 3).eval(), random_graph(nodes=40, edges=90))
    own = TestClient(application(module, Limits()))
    assert own.post("/predict", json={"nodes": [1]}).status_code == 200
    assert "cannot change" in own.post("/update", json={"x": {"1": [0.0] * 5}}).json()["error"]

    def full(handle):
        raise OSError(28, "No space left on device")

    engine.keep_journal(tmp_path / "journal")
    with monkeypatch.context() as patch:
        patch.setattr(journals.os, "fsync", full)
        reply = client.post("/update", json={"x": {"1": [0.0] * 5}})
    assert reply.status_code == 503 and "No space left" in reply.json()["error"] and engine.version == 0
    engine.close()


def test_metrics_count(served):
    _, _, client = served
    for nodes in ([1], [1, 2], [99]):
        client.post("/predict", json={"nodes": nodes})
    client.post("/update", json={"x": {"1": [0.0] * 5}})
    lines = client.get("/metrics").text.splitlines()
    for line in (
        'gst_requests_total{path="/predict",status="200"} 2',
        'gst_requests_total{path="/predict",status="400"} 1',
        'gst_request_seconds_count{path="/predict"} 3',
        'gst_request_seconds_bucket{path="/update",le="+Inf"} 1',
        "gst_answers_total 3",
        "gst_updates_total 1",
        "gst_graph_nodes 40",
        "gst_graph_version 1",
        "gst_nodes_read_count 2",
    ):
        assert line in lines, line


def test_every_answer_belongs_to_one_version():
    """Readers and writers at once: each answer is exactly that of the graph whose version it names."""
    data = random_graph(nodes=40, edges=90)
    result = cut(data, backbone("sage", 5))
    engine, rows = result.engine(updates=True), torch.randn(30, 5)
    reference = result.engine(updates=True)
    expected = [reference([5, 9])]
    for row in rows:
        reference.update(x={5: row})
        expected.append(reference([5, 9]))
    done = threading.Event()

    def ask(_: int) -> int:
        asked = 0
        while not done.is_set() or not asked:
            answer = engine.answer([5, 9])
            assert torch.equal(answer.outputs, expected[answer.version])
            asked += 1
        return asked

    with ThreadPoolExecutor(4) as pool:
        askers = [pool.submit(ask, i) for i in range(4)]
        for row in rows:
            engine.update(x={5: row})
        done.set()
        assert all(asker.result() for asker in askers)
    assert isinstance(result, gst.Result)
