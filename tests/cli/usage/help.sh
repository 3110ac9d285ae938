# The same text as without a command, on stdout.
"$SHEAF" help > help.txt
echo "exit $?"
head -n 1 help.txt
