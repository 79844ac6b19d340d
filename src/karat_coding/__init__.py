"""Coding agents: Claude Code, agents that speak ACP, and the scorers of what they leave in their
workspace.
"""
