"""MCP servers under test: whether one follows the protocol, an agent that calls one, and logging in
to one.
"""
