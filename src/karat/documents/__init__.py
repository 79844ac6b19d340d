"""YAML files as trees of nodes that keep their lines: what experiments and studies are read with."""
