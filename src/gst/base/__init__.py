"""What every room needs: errors, names, text, memory, random numbers, processes."""
