"""The scorer of answers to human studies."""
