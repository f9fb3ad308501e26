"""Numbers from runs that were made: differences, ranks, and policies that runs are held against."""
