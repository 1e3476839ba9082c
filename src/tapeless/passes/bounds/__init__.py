"""What is known of integers, and the tests of indices that are not needed for it."""
