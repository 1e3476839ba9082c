"""What each node becomes, in both modes. Rules register themselves when their module is imported."""
