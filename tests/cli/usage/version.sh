# The first line of --version names the program and its version; the rest is the machine.
"$SHEAF" --version | sed -n "1s/ (.*//p"
