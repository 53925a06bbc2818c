"""Both arcs of every edge as ``edge_index``, in little enough memory for a hundred million arcs."""

import numpy as np

CHUNK = 2**22  # rows per step: temporary arrays stay small compared with the graph


def symmetric(keys: np.ndarray, nodes: int) -> np.ndarray:
    """``edge_index`` [2, A] of the arcs ``keys`` = source · N + target and their opposites: sorted, each once.

    The same columns as PyG's ``to_undirected``; a self-loop stays one column. Peak memory is ``keys``, the result and 8
    bytes per arc.

    >>> symmetric(np.array([0 * 3 + 1, 1 * 3 + 0, 2 * 3 + 1, 2 * 3 + 2]), nodes=3).tolist()
    [[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]]
    """
    arcs = np.empty(2 * keys.size, dtype=np.int64)
    arcs[: keys.size] = keys
    for part in chunks(keys.size):
        source, target = np.divmod(keys[part], nodes)
        arcs[keys.size :][part] = target * nodes + source
    arcs.sort()
    arcs = drop_repeats(arcs)
    index = np.empty((2, arcs.size), dtype=np.int64)
    for part in chunks(arcs.size):
        np.divmod(arcs[part], nodes, out=(index[0, part], index[1, part]))
    return index


def drop_repeats(keys: np.ndarray) -> np.ndarray:
    """Sorted keys, each once; the same array if none repeats."""
    first = np.ones(keys.size, dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return keys if first.all() else keys[first]


def chunks(size: int) -> list[slice]:
    """Slices that cover 0 … size − 1."""
    return [slice(start, min(start + CHUNK, size)) for start in range(0, size, CHUNK)]
