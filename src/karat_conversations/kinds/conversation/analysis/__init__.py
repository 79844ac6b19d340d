"""journal → ConversationSummary: everything that is known turn by turn."""
