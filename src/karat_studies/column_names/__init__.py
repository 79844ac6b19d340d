"""Names of columns in files of studies."""
