"""What is asked of a store as a whole, by whoever runs it; no agent's tool reaches any of it."""
