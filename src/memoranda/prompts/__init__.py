"""What models are asked, one module a task: each with the version that is stored beside what it produced."""
