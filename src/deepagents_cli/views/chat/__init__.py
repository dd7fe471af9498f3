"""Show a conversation: on a screen, or line after line. The agent is in another process, the session.

Nothing in this package, nor in those that it stands on, imports LangChain, LangGraph or pydantic, and nothing
that takes long is imported before the first prompt is on the screen.
"""
