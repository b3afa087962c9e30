"""What a program offers to peers: publishers by name, and handlers of requests. It knows no session and no connection."""
