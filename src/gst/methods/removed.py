"""The columns that a run removed, so that its dense graph is known without the data it came from."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.base.errors import InputError

FILED = _INDEX, _WEIGHT = ("removed", "removed_weight")  # names in the file of a run


@dataclass(frozen=True)
class Removed:
    """Columns of the dense ``edge_index`` that are not in the sparse one, in their order."""

    edge_index: Tensor  # [2, columns] int64
    edge_weight: Tensor | None = None

    @classmethod
    def of(cls, data: Data, edge_mask: Tensor) -> "Removed":
        """From the dense graph and the mask of what stays."""
        weight, gone = data.get("edge_weight"), ~edge_mask
        return cls(data.edge_index.cpu()[:, gone], None if weight is None else weight.detach().cpu()[gone])

    def dense(self, graph: Data, edge_mask: Tensor) -> tuple[Tensor, Tensor | None]:
        """``edge_index`` and ``edge_weight`` of the dense graph."""
        index = torch.empty(2, edge_mask.numel(), dtype=torch.long)
        index[:, edge_mask], index[:, ~edge_mask] = graph.edge_index.cpu(), self.edge_index
        if self.edge_weight is None:
            return index, None
        weight = self.edge_weight.new_empty(edge_mask.numel())
        weight[edge_mask], weight[~edge_mask] = graph.edge_weight.detach().cpu().to(weight.dtype), self.edge_weight
        return index, weight

    def pack(self) -> dict[str, Tensor]:
        """Tensors for the file of a run; node ids take four bytes where they fit."""
        small = self.edge_index.numel() == 0 or int(self.edge_index.max()) < 2**31
        packed = {_INDEX: self.edge_index.int() if small else self.edge_index}
        return packed if self.edge_weight is None else {**packed, _WEIGHT: self.edge_weight}


def unpack_removed(tensors: dict[str, Tensor], mask: Tensor, nodes: int, path: Path) -> Removed | None:
    """Takes what :meth:`Removed.pack` made out of the tensors of a file; None in a file of an earlier gst."""
    index, weight = tensors.pop(_INDEX, None), tensors.pop(_WEIGHT, None)
    if index is None:
        return None
    columns = int((~mask).sum())
    whole = index.shape == (2, columns) and index.dtype in (torch.int32, torch.int64)
    whole = whole and (columns == 0 or (int(index.min()) >= 0 and int(index.max()) < nodes))
    if weight is not None:
        whole = whole and weight.shape == (columns,) and weight.is_floating_point() and bool((weight > 0).all())
    if not whole:
        raise InputError(f"{path}: the removed columns do not fit the graph: it is damaged")
    return Removed(index.long(), weight)
