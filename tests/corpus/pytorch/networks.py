"""All networks of PyTorch: importing this fills their table."""

from tests.corpus.pytorch import images, series
from tests.corpus.pytorch.blocks import NETWORKS

__all__ = ["NETWORKS", "images", "series"]
