"""Both Jacobians of every block, from as few forwards and backwards as their structure allows."""
