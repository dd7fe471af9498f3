"""Make an agent, drive its threads and keep what they leave; as a process, speak with a view."""
