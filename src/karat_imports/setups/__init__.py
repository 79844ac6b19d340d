"""Configurations of other tools that `karat init --from` reads, one file each."""
