"""Parts of commands."""
