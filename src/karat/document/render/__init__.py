"""Renderers of documents: each gives the same blocks another form, and knows no metric and no kind of dataset."""
