"""What an interval of a line would come to in tiles or in a loop, from its geometry alone."""
