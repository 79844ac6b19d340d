"""What `karat run` does besides running an experiment, a flag each."""
