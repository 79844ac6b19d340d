"""Names of columns in files of conversations."""
