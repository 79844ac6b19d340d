"""Reports that only runs over conversations have."""
