"""karat measures agents."""

__version__ = "0.1.0"
