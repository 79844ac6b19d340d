"""What `karat check` does besides checking an experiment, a flag each."""
