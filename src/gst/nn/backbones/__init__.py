"""The backbones: one file each, with the layer, the stack and all that is special about it."""

# the order of registration, in which help texts list them
# isort: off
from gst.nn.backbones.base import BACKBONES, Backbone
from gst.nn.backbones.gcn import GCN
from gst.nn.backbones.gin import GIN
from gst.nn.backbones.gat import GAT
from gst.nn.backbones.sage import SAGE
from gst.nn.backbones.cluster_gcn import ClusterGCN
# isort: on

__all__ = ["BACKBONES", "GAT", "GCN", "GIN", "SAGE", "Backbone", "ClusterGCN"]
