"""Where trials run besides this process, one file each."""
