"""Matrix products: found where they are written out, and left out where their sum is all that is wanted."""
