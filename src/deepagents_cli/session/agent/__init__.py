"""Make an agent of what a directory and the options say."""
