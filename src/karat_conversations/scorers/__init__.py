"""The scorers of answers that are numbers or spans of a text, one file each."""
