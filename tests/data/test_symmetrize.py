import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.utils import to_undirected

from gst.data import symmetrize
from gst.data.symmetrize import symmetric

ENDS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=40)


@given(ENDS, st.sampled_from([1, 3, 2**22]))
def test_the_columns_of_to_undirected(ends, chunk):
    index = torch.tensor(ends).t()
    before, symmetrize.CHUNK = symmetrize.CHUNK, chunk
    try:
        columns = symmetric((index[0] * 9 + index[1]).numpy(), nodes=9)
    finally:
        symmetrize.CHUNK = before
    assert torch.equal(torch.from_numpy(columns), to_undirected(index, num_nodes=9))


def test_keys_stay_as_they_are():
    keys = np.array([5, 1, 5])
    symmetric(keys, nodes=3)
    assert keys.tolist() == [5, 1, 5]
