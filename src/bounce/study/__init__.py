"""Studies: runs that last. A file on disk, its lock, its status."""
