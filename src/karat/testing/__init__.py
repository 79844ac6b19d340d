"""Scripted counterparts for tests and first trials: real processes, not mocks."""
