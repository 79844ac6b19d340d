"""Runs on many machines: trials on the nodes of a Ray cluster, and shards put together again."""
