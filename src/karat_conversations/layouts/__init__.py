"""Conversations in files, whatever their shape."""
