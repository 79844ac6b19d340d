"""Published human experiments, replayed with agents as participants: the kind of dataset and its
statistics.
"""
