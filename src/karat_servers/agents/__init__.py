"""The agent whose answers are the results of tools."""
