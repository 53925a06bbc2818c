"""Random changes of a living graph."""

import random
from collections import Counter
from typing import Any

from gst.inference.serving.base import ends_of
from gst.inference.serving.engine import NativeEngine

KINDS = (("add", 0.4), ("remove", 0.3), ("x", 0.2), ("new node", 0.1))


class Changes:
    """Draws one change after another that fits the graph as it is."""

    def __init__(self, engine: NativeEngine, seed: int) -> None:
        assert engine.living is not None
        self.engine, self.living = engine, engine.living
        self.random = random.Random(seed)
        self.counts: Counter[str] = Counter()

    def draw(self) -> dict[str, Any]:
        kind = self.random.choices([name for name, _ in KINDS], [share for _, share in KINDS])[0]
        self.counts[kind] += 1
        if kind == "add":
            return {"add": [self._missing()]}
        if kind == "remove":
            return {"remove": [self._present()]}
        row = self._row()
        node = self.random.randrange(self.engine.num_nodes)
        return {"x": {str(node): row}} if kind == "x" else {"new_nodes": [row], "add": [[node, self.engine.num_nodes]]}

    def _missing(self) -> list[int]:
        while True:
            u, v = self.random.sample(range(self.engine.num_nodes), 2)
            if not self.living.has(u << 32 | v) and not self.living.has(v << 32 | u):
                return [u, v]

    def _present(self) -> list[int]:
        keys = self.living.base.keys
        while True:
            u, v = ends_of(int(keys[self.random.randrange(keys.size)]))
            if self.living.has(u << 32 | v):
                return [u, v]

    def _row(self) -> dict[str, Any]:
        """The features of another node, one of them changed."""
        x = self.engine.state.features_of(self.random.randrange(self.engine.num_nodes)).copy()
        x[self.random.randrange(x.size)] = 1.0
        columns = x.nonzero()[0]
        return {"columns": columns.tolist(), "values": x[columns].tolist()}
