"""The agents that write code, one file each."""
