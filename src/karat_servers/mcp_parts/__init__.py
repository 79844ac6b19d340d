"""What karat's client of MCP servers finds here: recordings, relays and OAuth."""
