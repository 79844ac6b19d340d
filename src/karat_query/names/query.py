"""`karat.query`."""

from karat_query.api import query

__all__ = ["query"]
