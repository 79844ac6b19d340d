"""Reads studies that people already have."""
