"""What data, tensor and context parallelism send and when it hides behind the arithmetic."""
