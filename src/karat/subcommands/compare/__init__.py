"""What `karat compare` does besides comparing two runs, a flag each."""
