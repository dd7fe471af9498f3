"""The process that holds the agent of a conversation, and speaks with the screen."""
