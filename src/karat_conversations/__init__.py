"""Conversations of numeric questions about financial reports: the kind of dataset, its scorers and
its exports.
"""
