"""Renderers of documents: each formats the same blocks, and knows nothing of metrics or dataset
kinds.
"""
