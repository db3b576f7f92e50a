"""All models of the zoo, in one table: importing the families registers them."""

from zoo import cells, classic, dense_prediction, mobile, text, wiring
from zoo.registry import NETWORKS, Entry

__all__ = ["NETWORKS", "Entry", "cells", "classic", "dense_prediction", "mobile", "text", "wiring"]
