# Without a command: the usage, and exit status 2.
"$SHEAF"
