"""What a child process measures. A probe prints one JSON object, and runs in every environment."""
