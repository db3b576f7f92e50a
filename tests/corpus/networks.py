"""All networks: importing this fills the registry."""

from tests.corpus import dense_prediction, images, sequences, words
from tests.corpus.registry import NETWORKS

__all__ = ["NETWORKS", "dense_prediction", "images", "sequences", "words"]
