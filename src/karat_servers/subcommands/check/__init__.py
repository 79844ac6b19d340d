"""What `karat check` does with servers."""
