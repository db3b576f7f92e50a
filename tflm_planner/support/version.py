"""The version of the package, on the lowest floor, so that every floor may import it."""

__version__ = "0.1.0"
