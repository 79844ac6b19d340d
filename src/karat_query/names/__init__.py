"""What this package adds to the names of `karat`, one file each."""
