"""journal → StudySummary and StudyComparison: agreement with people, and everything else that only
studies have.
"""
