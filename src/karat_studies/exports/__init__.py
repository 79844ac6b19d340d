"""Reports that only runs over studies have."""
