"""`karat runs merge`."""
