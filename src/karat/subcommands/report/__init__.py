"""What `karat report` writes besides reports, a flag each."""
