"""Results of other tools, both ways: importers make runs of them, exports write runs in their
forms.
"""
