"""`karat.relation`."""

from karat_query.api import relation

__all__ = ["relation"]
