"""What `karat label` does besides reading labels, a flag each."""
